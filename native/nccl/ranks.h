// The communicator of nccl.h: one or several held ranks, with or without a control communicator.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/agreement.h"
#include "core/call.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "core/windows/wire_windows.h"
#include "cuda/kernels.h"
#include "nccl/comms.h"
#include "nccl/failure.h"
#include "nccl/nccl.h"
#include "nccl/processes.h"
#include "nccl/registered.h"

namespace gradlink::nccl {

/// State shared with registrations, which may outlive their communicator.
struct Core {
  Core(std::span<const int> ranks, std::span<cuda::Device* const> devices, int size)
      : comms(ranks, devices, size), registered(ranks.size()) {}
  /// Frees retired memory after a call or retirement; a running call's thread does it at its end.
  void sweepUnlessBusy() noexcept;

  /// Held during a call: NCCL allows one thread at a time.
  std::mutex calls;
  Comms comms;
  /// Memory that the library's threads may still write to after a failed call.
  std::vector<std::shared_ptr<void>> abandoned;
  RegisteredPieces registered;
};

/// Declare before the lock of `calls`.
class SweepAfter {
 public:
  explicit SweepAfter(Core& core) : core_(core) {}
  ~SweepAfter() { core_.sweepUnlessBusy(); }
  SweepAfter(const SweepAfter&) = delete;
  SweepAfter& operator=(const SweepAfter&) = delete;

 private:
  Core& core_;
};

/// The held ranks and how they reach the others.
struct HeldRanks {
  std::vector<int> ranks;
  std::vector<cuda::Device*> devices;
  int size = 0;
  /// Null if all ranks are held, or without one.
  std::unique_ptr<Communicator> control;
  /// With a control communicator: its processes, which may hold several ranks.
  std::optional<Processes> processes;
};

/// Buffers for neighbors' inputs and the launch arguments of weighted sums.
class Neighbors {
 public:
  explicit Neighbors(const Comms&);
  /// Memory of at least this many bytes, kept for later calls.
  char* inbox(std::size_t member, cuda::Device& device, std::size_t bytes);
  cuda::TaskRing& ring(std::size_t member) { return *places_[member].ring; }

 private:
  struct Inbox {
    cuda::DeviceMemory inbox;
    std::unique_ptr<cuda::TaskRing> ring;
  };
  std::vector<Inbox> places_;
};

/// Ranks of the processes of `control`, after a split; `devices`: of those held here.
std::unique_ptr<NcclCommunicator> joinPart(std::unique_ptr<Communicator> control,
                                           Processes processes, std::vector<cuda::Device*> devices,
                                           const Options&);

class Ranks final : public NcclCommunicator {
 public:
  /// Meets the others under these ids; without any, at the first call that needs it.
  Ranks(HeldRanks held, std::span<const UniqueId> ids, const Options& options);
  ~Ranks() override;

  int size() const override { return size_; }
  std::span<const int> heldRanks() const override { return ranks_; }
  const char* backend() const override { return "nccl"; }
  double timeoutMs() const override { return options_.timeoutMs; }
  std::span<cuda::Device* const> devices() const override { return devices_; }

  void run(const Call&) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions&) override;
  std::vector<std::unique_ptr<Window>> openWindows(std::span<const WindowSpec>,
                                                   const CallOptions&) override;
  void* allocShared(std::size_t bytes) override;
  void freeShared(void*) override {}
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions&) override;
  std::vector<HeldPart> splitHeld(std::span<const Claim>, const CallOptions&) override;
  std::unique_ptr<Communicator> splitForCollectives(int color, int key,
                                                    const CallOptions&) override;
  void abort(const std::string& reason) override;
  void leave() override;
  void close() override;

  void enqueue(std::span<const Launch>, std::span<cuda::Stream* const>,
               const CallOptions&) override;
  void enqueueMessages(const char* op, const MessageSteps&, const Buffers&, DType,
                       std::span<cuda::Stream* const>, const CallOptions&) override;
  void runTogether(std::span<const Launch>, const CallOptions&) override;
  void check(const char* op) override;
  bool barrierOnHost() const override { return holdsAll() || control_ != nullptr; }
  std::vector<std::optional<double>> estimateSeconds(std::span<const Shape>,
                                                     const CallOptions&) override;
  std::unique_ptr<Registration> registerMemory(std::span<void* const>, std::size_t bytes,
                                               RegistrationKind, const CallOptions&) override;
  std::vector<std::unique_ptr<RegisteredMemory>> allocRegistered(std::size_t bytes,
                                                                 const CallOptions&) override;

 private:
  void barrier(const CallOptions&);
  void neighborAllReduce(const Call&);
  void counted(const Call&);
  void neighborAllGather(const Call&);
  void pairGossip(const Call&);
  void transfer(const Call&);
  /// In a call of all ranks, before the library's handles are used.
  void meet(const Watch&);
  /// For calls that not all ranks make.
  void needMet(const char* op) const;
  /// Runs a call with a Watch; a fatal error ends the communicator.
  template <class Body>
  void guarded(const char* op, const CallOptions&, const Body& body);
  void checkOpen(const char* op) const;
  /// Adds to a timeout in the library the rank that does not answer.
  Error withSilent(const Error&);
  void look(const char* op);
  double timeoutOf(const CallOptions&) const;
  /// Once the communicator was ended: frees the library's part, or leaves that to a running call.
  void abortUnlessBusy();
  bool holdsAll() const { return ranks_.size() == static_cast<std::size_t>(size_); }
  void needOneRank(const char* op) const;
  /// "rank 3", or the process with all its ranks.
  std::string whoHolds(int rank) const;
  std::string ownName() const { return whoHolds(ranks_.front()); }
  void checkMessages(const Call&) const;
  /// `adds`: the call computes with it.
  bool takesType(DType, bool adds) const;
  void checkType(const char* op, DType, bool adds) const;

  void checkLaunch(const Launch&) const;
  void checkPlaces(const Launch&) const;
  void checkStreams(const char* op, std::span<cuda::Stream* const>) const;
  void checkBuffers(const Shape&, const Buffers&) const;
  /// Allocates before anybody launches: later a kernel of another rank might wait for this one.
  void reserve(std::span<const Launch>, std::span<cuda::Stream* const>);
  void launch(std::span<const Launch>, std::span<cuda::Stream* const>, const Watch&);
  /// Agrees as often as the options require.
  void agreeOnce(std::span<const Launch>, const Watch&);
  /// All ranks compare their announcements; throws a mismatch if they differ.
  void agree(std::span<const Launch>, const Watch&);
  void agree(const Shape& shape, const Watch& watch) {
    const Launch launch{shape, {}};
    agree({&launch, 1}, watch);
  }
  /// Throws on all ranks if one lacks this much memory.
  void agreeOnMemory(std::size_t bytes, bool registers, const std::optional<Error>& failed,
                     const Watch&);
  void registerPieces(std::vector<std::list<RegisteredPiece>>&, const Watch&);
  /// exchange() bound to `watch`, which must outlive it.
  Exchange exchangeWithin(const Watch& watch) {
    return [this, &watch](const void* own, void* all, std::size_t bytes) {
      exchange(own, all, bytes, watch);
    };
  }
  std::vector<CallName> namesOfAll(const Watch&);
  /// Gathers `bytes` of each rank into `all`, by rank. `own`: those of the held ranks; several only
  /// if all are held or with a control communicator.
  void exchange(const void* own, void* all, std::size_t bytes, const Watch&);
  /// Ids made on the first rank, shared with all.
  std::vector<UniqueId> shareIds(const Watch&);
  /// The library's estimate, on blocking handles of the same ranks.
  double simulate(const Comms&, const Shape&, std::span<const cuda::DeviceMemory> places,
                  const Watch&);
  /// For processes that hold several ranks.
  std::vector<HeldPart> splitOver(std::span<const Claim>, const Watch&);
  /// Whether this process holds both sides. Throws invalidArgument if `pairs` lacks or misfits one.
  bool holdsBoth(const char* op, const Gossip&, std::span<const Gossip> pairs) const;
  /// The ranks of each pair exchange what they bring. Returns the first mismatch; fills `agreed`.
  std::optional<Error> agreeInPairs(DType, std::span<const Gossip>,
                                    std::vector<const Gossip*>& agreed, const Watch&);
  void runGossip(DType, std::span<const Gossip* const>, const Watch&);
  void runCounted(const Call&, const CountedTable&, const Watch&);
  void runNeighbors(const Shape&, const Buffers&, std::span<const Neighborhood> own,
                    std::span<const WeightRow> rows, const Watch&);
  /// Every rank's sum, from all neighborhoods.
  std::vector<WeightRow> weightRows(std::span<const Neighborhood>, const Watch&);

  const Library& library_;
  std::vector<int> ranks_;
  std::vector<cuda::Device*> devices_;
  int size_;
  std::unique_ptr<Communicator> control_;
  std::optional<Processes> processes_;
  bool met_;
  Options options_;
  std::shared_ptr<Core> core_;
  std::vector<cuda::Stream*> streams_;
  /// Digests of agreed calls.
  std::unordered_set<std::uint64_t> agreed_;
  Failure failure_;
  std::atomic<bool> closed_{false};
  /// Exchanges without a control communicator. Allocated ahead: allocating may wait for other
  /// ranks.
  cuda::DeviceMemory exchanged_;
  /// Made at the first use.
  std::unique_ptr<Neighbors> neighbors_;
  /// Over the control communicator.
  WireWindows windows_;
};

template <class Body>
void Ranks::guarded(const char* op, const CallOptions& options, const Body& body) {
  {
    const SweepAfter sweep(*core_);
    const std::lock_guard lock(core_->calls);
    const Deadline deadline = Deadline::in(timeoutOf(options));
    checkOpen(op);
    try {
      body(Watch{op, deadline, [this, op] { look(op); }, options.name});
    } catch (const Error& error) {
      if (error.usable) throw;
      const Error known = withSilent(error);
      failure_.failAll(known, true);
      // Otherwise the peers would wait for this rank.
      if (control_) control_->abort(known.what());
      core_->comms.abort();
      throw Error(known);
    }
  }
  abortUnlessBusy();
}

}  // namespace gradlink::nccl

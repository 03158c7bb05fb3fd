// Communicators over NCCL: ranks are GPUs, buffers are device memory.
//
// In one process a communicator holds one rank for each GPU; in a job each process holds one rank
// or several.
// libnccl.so.2 (or the file GRADLINK_NCCL_LIBRARY names) is loaded at first use; what a version
// lacks is found by its symbols.
//
// Buffers are memory of their rank's GPU. Messages have the tag 0 and a known source, and are as
// long as their receive says: NCCL sends no envelopes. A send waits for its receive, so that two
// ranks that both send first wait for one another until the deadline. Those of a sendReceive go as
// one group: held ranks may send to each other, and then both ends are among them. So do the pairs
// of a pairGossip: of a pair that is held here both sides are among them, and where two bring other
// counts or types, both throw mismatch once the other pairs have averaged.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "nccl/message.h"

namespace gradlink::nccl {

/// How ranks find each other: made on one, carried to all by other means.
using UniqueId = std::array<char, 128>;

/// What the loaded library is and can do. Throws Error(backendUnavailable) that says which file was
/// looked for and where.
struct LibraryInfo {
  std::string file;
  /// 2.28.9 as 22809; see versionText.
  int version = 0;
  bool float8 = false;
  bool simulation = false;    // ncclGroupSimulateEnd: estimateSeconds
  bool scaledSums = false;    // ncclRedOpCreatePreMulSum
  bool registration = false;  // ncclCommRegister
  bool windows = false;       // ncclCommWindowRegister: symmetric registration
  /// GRADLINK_NCCL_REGISTER=no: allocRegistered gives plain memory.
  bool registersNothing = false;
  bool exchanges = false;  // allToAll, gather, scatter of its own; else made of sends and receives
};
const LibraryInfo& libraryInfo();
/// "2.28.9", of both of NCCL's encodings.
std::string versionText(int code);

UniqueId makeUniqueId();

/// One collective: its shape, its memory, and for sums the factors by which inputs are multiplied
/// first, one for each held rank (float types only; none: not at all). Not barrier, split or
/// neighborAllReduce.
struct Launch {
  Shape shape;
  Buffers buffers;
  std::span<const double> scales = {};
};

/// Device memory that the library allocates itself, where it can, so that it may be registered and
/// peers map it; plain device memory where it cannot.
class Memory {
 public:
  Memory() = default;
  Memory(cuda::Device& device, std::size_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  void* data() const { return own_ != nullptr ? own_ : plain_.data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  cuda::Device* device_ = nullptr;
  void* own_ = nullptr;
  cuda::DeviceMemory plain_;
  std::size_t bytes_ = 0;
};

/// How memory is made known to the library ahead of its use.
enum class RegistrationKind {
  local,      // each rank for itself
  symmetric,  // a window that all ranks open together
};

/// Ends with this object, or with the communicator if that is first.
class Registration {
 public:
  virtual ~Registration() = default;
  /// What was made: local where symmetric was asked for and the library has no windows.
  virtual RegistrationKind kind() const = 0;
};

/// One rank's part of memory that NcclCommunicator::allocRegistered made. It may outlive the
/// communicator; its end, on any thread, waits for no call.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  virtual void* data() const = 0;
  /// Nothing where the library knows nothing of it: plain memory of the GPU.
  virtual std::optional<RegistrationKind> kind() const = 0;
};

/// What a held rank asks of a split: ranks of one color form a part, ordered by (key, old rank); a
/// color below 0 takes no part.
struct Claim {
  int color;
  int key;
};

class NcclCommunicator;

/// A part of a split that ranks held here belong to.
struct HeldPart {
  int color;
  std::unique_ptr<NcclCommunicator> part;
};

/// What measuring and the store need beside the contract.
class NcclCommunicator : public Communicator {
 public:
  /// The GPU of each held rank.
  virtual std::span<cuda::Device* const> devices() const = 0;

  /// Queues all of these as one NCCL group, held rank i's part on streams[i], and returns when the
  /// library has launched them, without waiting for the device: buffers stay in use until the
  /// streams are past it. Streams may be capturing a CUDA graph. The other ranks must do the same;
  /// that they do is not checked. While streams are waited for, call `check` now and then.
  virtual void enqueue(std::span<const Launch>, std::span<cuda::Stream* const> streams,
                       const CallOptions& = {}) = 0;
  /// These messages, each step one group; else as enqueue. All ranks' are given.
  virtual void enqueueMessages(const char* op, const MessageSteps&, const Buffers&, DType,
                               std::span<cuda::Stream* const> streams, const CallOptions& = {}) = 0;
  /// As enqueue on streams of its own, and waits. Ranks agree first, as in every call.
  virtual void runTogether(std::span<const Launch>, const CallOptions& = {}) = 0;
  /// Ends the communicator when the library, a peer or an abort has ended what is queued, so that
  /// the streams come free; then and later throws why.
  void check(const char* op) override = 0;

  /// As split, a claim for each held rank; the parts that they belong to, by ascending color. For
  /// ranks with a control communicator.
  virtual std::vector<HeldPart> splitHeld(std::span<const Claim>, const CallOptions& = {}) = 0;

  /// openWindow of all held ranks, one for each in their order. They are freed together: the last
  /// free() of them waits for the other processes.
  virtual std::vector<std::unique_ptr<Window>> openWindows(std::span<const WindowSpec>,
                                                           const CallOptions& = {}) = 0;

  /// Whether `barrier` needs no GPU: it does not wait for what streams are held for.
  virtual bool barrierOnHost() const = 0;

  /// What the library expects each of these to take, in seconds; nothing where it has no model of
  /// it (what is made of sends and receives) or no way to tell. Collective. Opens a communicator of
  /// its own, and closes it: ask for all at once.
  virtual std::vector<std::optional<double>> estimateSeconds(std::span<const Shape>,
                                                             const CallOptions& = {}) = 0;

  /// Makes bytes of device memory of each held rank known. Symmetric is collective, and wants
  /// Memory of the same size on all ranks. Error(unsupported) where the library cannot register at
  /// all.
  virtual std::unique_ptr<Registration> registerMemory(std::span<void* const> memory,
                                                       std::size_t bytes, RegistrationKind,
                                                       const CallOptions& = {}) = 0;
  /// Memory of this size for each held rank, registered as well as the library can: symmetric where
  /// it has windows, else local, else not. Collective: all ranks, the same size. What is registered
  /// all ranks use in the same calls, at the same place of it: calls that are agreed on check that.
  /// A rank without room for it is ERR_OUT_OF_MEMORY on all, and harmless.
  virtual std::vector<std::unique_ptr<RegisteredMemory>> allocRegistered(
      std::size_t bytes, const CallOptions& = {}) = 0;

  /// As split, for calls that all ranks of a part make together: over a control communicator the
  /// part meets in the library in the first of them that moves data, and not at all where none
  /// comes. Until then calls of two ranks alone, and registerMemory, are ERR_UNSUPPORTED in it.
  virtual std::unique_ptr<Communicator> splitForCollectives(int color, int key,
                                                            const CallOptions& options = {}) {
    return split(color, key, options);
  }
};

/// Which collectives the ranks agree on before they launch them. What is not agreed on and differs
/// ends at the deadline, without a word about who called what.
enum class Check {
  always,
  first,  // of its kind: the same call, lengths and options included, made again is not
  never,
};

struct Options {
  /// Of each call, and of the rendezvous.
  double timeoutMs = 30000;
  /// Looked at while waiting for the others: once true, the rendezvous is given up with ERR_CLOSED.
  /// May be null.
  const std::atomic<bool>* cancelled = nullptr;
  /// Where there is a control communicator.
  Check check = Check::always;
  /// Ranks that meet at one id, where the library takes several.
  int ranksOfId = 128;
};

/// One rank for each of these GPUs, all in this process. Distinct, except where the library permits
/// several ranks on one GPU.
std::unique_ptr<NcclCommunicator> openLocal(std::span<const int> gpus, const Options& = {});

/// One rank of `size`, on this GPU. Returns when all have come. Peers that die, abort or make other
/// calls are noticed by the deadline alone.
std::unique_ptr<NcclCommunicator> join(const UniqueId&, int rank, int size, int gpu,
                                       const Options& = {});

/// The rank that `control` holds, on this GPU; `control` holds one rank of a communicator between
/// hosts' memories and serves nothing else. Over it travels the unique id, ranks agree on each call
/// before it is launched (mismatches are ERR_MISMATCH, a rank that does not come is named), and a
/// lost or aborting rank ends the others' calls.
std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control, int gpu,
                                       const Options& = {});

/// The same with a rank for each of these GPUs: `control` holds one process of several. Ranks
/// follow the order of processes, and within one that of its GPUs. Where a process holds several
/// ranks, it splits with splitHeld, sends with messages, averages with gossip, gathers with
/// gatherFromNeighbors and opens windows with openWindows. Errors name ranks with the process that
/// holds them; where a process cannot take part they are ERR_ABORTED on the others, and name it.
std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control,
                                       std::span<const int> gpus, const Options& = {});

}  // namespace gradlink::nccl

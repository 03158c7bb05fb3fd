// Communicators over NCCL: ranks are GPUs, buffers are device memory.
//
// In one process a communicator holds one rank for each GPU; in a job each process holds one or
// several. libnccl.so.2 (or the file in GRADLINK_NCCL_LIBRARY) is loaded at first use; features are
// detected by its symbols.
//
// Buffers are memory of their rank's GPU. Messages have tag 0, a known source and the length of
// their receive: NCCL has no envelopes. A send waits for its receive, so two ranks that both send
// first wait until the deadline. The messages of a sendReceive are one group, and so are the pairs
// of a pairGossip: if both ends are held here, both must be in the call. Pairs with different
// counts or types both throw a mismatch once the other pairs are done.
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

/// How ranks find each other: created on one, sent to all by other means.
using UniqueId = std::array<char, 128>;

/// The library's features. Throws Error(backendUnavailable) with the file and the places searched.
struct LibraryInfo {
  std::string file;
  /// 2.28.9 as 22809; see versionText.
  int version = 0;
  bool float8 = false;
  bool simulation = false;
  bool scaledSums = false;    // ncclRedOpCreatePreMulSum
  bool registration = false;  // ncclCommRegister
  bool windows = false;       // ncclCommWindowRegister: symmetric registration
  /// GRADLINK_NCCL_REGISTER=no: allocRegistered returns plain memory.
  bool registersNothing = false;
  bool exchanges = false;  // own allToAll, gather, scatter; else made of sends and receives
};
const LibraryInfo& libraryInfo();
/// "2.28.9", from either of NCCL's encodings.
std::string versionText(int code);

UniqueId makeUniqueId();

/// One collective: its shape, its memory and, for sums of floats, factors of the inputs, one for
/// each held rank (or none). Not barrier, split or neighborAllReduce.
struct Launch {
  Shape shape;
  Buffers buffers;
  std::span<const double> scales = {};
};

/// Device memory from the library's allocator, so peers can map it; or plain device memory.
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

enum class RegistrationKind {
  local,      // for each rank by itself
  symmetric,  // a window that all ranks open together
};

/// Ends with this object or with the communicator.
class Registration {
 public:
  virtual ~Registration() = default;
  /// Local, if symmetric was requested but the library has no windows.
  virtual RegistrationKind kind() const = 0;
};

/// A rank's part of allocRegistered's memory; may outlive the communicator, is freed without a
/// wait.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  virtual void* data() const = 0;
  /// Nothing for plain GPU memory.
  virtual std::optional<RegistrationKind> kind() const = 0;
};

/// A held rank's claim in a split: one part for a color, ordered by (key, old rank); below 0: none.
struct Claim {
  int color;
  int key;
};

class NcclCommunicator;

struct HeldPart {
  int color;
  std::unique_ptr<NcclCommunicator> part;
};

/// Additional functions for measuring and the store.
class NcclCommunicator : public Communicator {
 public:
  /// The GPU of each held rank.
  virtual std::span<cuda::Device* const> devices() const = 0;

  /// Queues all of these as one NCCL group, held rank i's part on streams[i]. Returns once
  /// launched: buffers stay in use until the streams are past it. Streams may be capturing a CUDA
  /// graph. All ranks must do the same, unchecked. While waiting for streams, call `check`.
  virtual void enqueue(std::span<const Launch>, std::span<cuda::Stream* const> streams,
                       const CallOptions& = {}) = 0;
  /// Queues messages of all ranks, each step as one group; else as enqueue.
  virtual void enqueueMessages(const char* op, const MessageSteps&, const Buffers&, DType,
                               std::span<cuda::Stream* const> streams, const CallOptions& = {}) = 0;
  /// As enqueue on own streams, but agrees first and waits.
  virtual void runTogether(std::span<const Launch>, const CallOptions& = {}) = 0;
  /// Ends the communicator once the library, a peer or an abort has failed the queued work, so
  /// streams become idle; throws why, then and later.
  void check(const char* op) override = 0;

  /// As split, with a claim for each held rank; returns parts by ascending color. Needs `control`.
  virtual std::vector<HeldPart> splitHeld(std::span<const Claim>, const CallOptions& = {}) = 0;

  /// openWindow for all held ranks in order, freed together: the last free() waits for the others.
  virtual std::vector<std::unique_ptr<Window>> openWindows(std::span<const WindowSpec>,
                                                           const CallOptions& = {}) = 0;

  /// Whether `barrier` is independent of the GPU and its streams.
  virtual bool barrierOnHost() const = 0;

  /// The library's estimate for each of these, in seconds; nothing without a model (calls made of
  /// sends and receives). Collective. Opens and closes a communicator: ask for all at once.
  virtual std::vector<std::optional<double>> estimateSeconds(std::span<const Shape>,
                                                             const CallOptions& = {}) = 0;

  /// Registers memory of each held rank. Symmetric is collective and needs Memory of one size on
  /// all ranks. Throws Error(unsupported) without registration.
  virtual std::unique_ptr<Registration> registerMemory(std::span<void* const> memory,
                                                       std::size_t bytes, RegistrationKind,
                                                       const CallOptions& = {}) = 0;
  /// Memory of this size for each held rank, registered if possible: symmetric, else local.
  /// Collective, with one size. All ranks must use registered memory in the same calls at the same
  /// offset: agreed calls check that. If a rank lacks room, all throw ERR_OUT_OF_MEMORY.
  virtual std::vector<std::unique_ptr<RegisteredMemory>> allocRegistered(
      std::size_t bytes, const CallOptions& = {}) = 0;

  /// As split, for calls that all ranks of a part make together. With a control communicator the
  /// part meets in the library only at its first call that moves data. Before that, calls of two
  /// ranks and registerMemory are ERR_UNSUPPORTED.
  virtual std::unique_ptr<Communicator> splitForCollectives(int color, int key,
                                                            const CallOptions& options = {}) {
    return split(color, key, options);
  }
};

/// Which collectives ranks agree on before launching. Other mismatches end at the deadline,
/// unnamed.
enum class Check {
  always,
  first,  // of its kind: repeating the same call, with equal lengths and options, is not checked
  never,
};

struct Options {
  /// Of each call, and of the rendezvous.
  double timeoutMs = 30000;
  /// Checked during the rendezvous: once true, it throws ERR_CLOSED. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  /// With a control communicator.
  Check check = Check::always;
  /// Ranks that meet at one id, if the library takes several.
  int ranksOfId = 128;
};

/// One rank for each of these GPUs, in this process. Distinct, unless the library permits more.
std::unique_ptr<NcclCommunicator> openLocal(std::span<const int> gpus, const Options& = {});

/// One rank of `size`, on this GPU, once all have come. Only the deadline detects failed peers.
std::unique_ptr<NcclCommunicator> join(const UniqueId&, int rank, int size, int gpu,
                                       const Options& = {});

/// The rank that `control` holds, on this GPU. `control` connects the hosts' memories, holds one
/// rank and serves nothing else: it carries the unique id and the agreement before each launch.
/// Mismatches are ERR_MISMATCH, a missing rank is named, a lost or aborting one ends others' calls.
std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control, int gpu,
                                       const Options& = {});

/// The same with a rank for each of these GPUs: `control` connects the processes. Ranks are ordered
/// by process, then by GPU. A process with several ranks uses splitHeld, messages, gossip,
/// gatherFromNeighbors and openWindows. Errors name ranks with their process; if a process cannot
/// take part, the others get ERR_ABORTED with its name.
std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control,
                                       std::span<const int> gpus, const Options& = {});

}  // namespace gradlink::nccl

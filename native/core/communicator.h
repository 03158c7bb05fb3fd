// The contract between backends and everything above them.
//
// A Communicator holds one rank (a process or thread of a job) or several (the devices of one
// process). Every call takes one input and one output pointer for each held rank, in the order of
// heldRanks(). Calls block until the held ranks' part is done. All ranks must make the same calls
// in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/collective.h"
#include "core/error.h"
#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

class Window;
class Wire;
struct Counted;
struct WindowSpec;

/// Memory of one call: in[i] and out[i] belong to heldRanks()[i]. In place means in[i] == out[i] if
/// both have the same length. For all-gather and gather it means in == out + rank * count, for
/// reduce-scatter and scatter out == in + rank * count (NCCL's convention). Otherwise they must not
/// overlap. A pointer that its rank does not need (out on a non-root of reduce) may be null.
struct Buffers {
  std::span<const void* const> in;
  std::span<void* const> out;
};

inline constexpr double kDefaultTimeoutMs = 30000;

/// Copies received bytes to their destination.
using CopyIn = std::function<void(void* to, const void* from, std::size_t bytes)>;

struct CallOptions {
  /// Milliseconds until ERR_TIMEOUT; negative: the communicator's default.
  double timeoutMs = -1;
  /// The caller's name for the call, shown to the other ranks on a mismatch; null: none.
  const char* name = nullptr;
  /// For a receive into a GPU's memory: see leastGpuMessage().
  const CopyIn* copyIn = nullptr;
};

/// One rank's part of a neighborAllReduce: out = (selfWeight * in + sum over sources of weight *
/// (what it sent)) / divisor. A source sends its input times its weight for this destination.
struct Neighbor {
  int rank;
  double weight;
};
struct Neighborhood {
  double selfWeight = 1;
  std::vector<Neighbor> sources;
  std::vector<Neighbor> destinations;
  /// Whether the ranks' lists are compared first. If no rank wants that, the caller guarantees that
  /// they match: otherwise the result is undefined, but the call ends.
  bool check = true;
  /// The divisor of the sum, applied before rounding or wrapping.
  std::size_t divisor = 1;
};

struct NeighborBlock {
  int rank;
  std::size_t count;
};
/// One rank's part of a neighborAllGather: `count` elements of `in` go to each destination; the
/// sources' blocks follow each other in `out`, in the order of the sources.
struct NeighborGather {
  int rank;
  const void* in;
  std::size_t count;
  void* out;
  std::span<const NeighborBlock> sources;
  std::span<const int> destinations;
};

/// A held rank's side of a pairGossip: out = selfWeight * in + pairWeight * the peer's in.
struct Gossip {
  /// An index into heldRanks().
  std::size_t held;
  int peer;
  const void* in;
  void* out;
  std::size_t count;
  double selfWeight;
  double pairWeight;
};

struct Received {
  int source;
  std::size_t count;
};

inline constexpr int kAnySource = -1;

struct Message {
  /// An index into heldRanks().
  std::size_t held;
  /// A receive may use kAnySource.
  int peer;
  int tag;
  bool sends;
  DType dtype;
  std::size_t count;
  /// A send only reads it.
  void* data;
  Received got = {};
};

/// One call, from JavaScript to the backend. Unused fields are empty; lists are by held rank.
struct Call {
  Shape shape;
  /// For collectives and neighborAllReduce.
  Buffers buffers = {};
  CallOptions options = {};
  /// For NCCL sums of floats: factors of the inputs; empty: none.
  std::span<const double> scales = {};
  std::span<const Neighborhood> neighborhoods = {};
  Counted* counted = nullptr;
  std::span<const NeighborGather> gathers = {};
  /// For pairGossip: the held ranks that have a peer.
  std::span<const Gossip> pairs = {};
  /// One for send and receive; sendReceive takes several that run together.
  std::span<Message> messages = {};

  const char* op() const { return nameOf(shape.kind); }
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int size() const = 0;
  virtual std::span<const int> heldRanks() const = 0;
  virtual const char* backend() const = 0;
  /// The timeout of calls that do not set one.
  virtual double timeoutMs() const { return kDefaultTimeoutMs; }

  /// Runs any of the calls below, unchecked. Backends implement this one and leave the calls that
  /// they have no own implementation for to compose().
  virtual void run(const Call& call) = 0;

  // ---- collectives. `count` is in elements of `dtype`, of the buffer given at each call.

  void collective(const Shape& shape, const Buffers& b, const CallOptions& o = {}) {
    run({.shape = shape, .buffers = b, .options = o});
  }
  /// in: count, out: count. All ranks get the same bits.
  void allReduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                 const CallOptions& o = {}) {
    collective({Kind::allReduce, dtype, op, 0, count}, b, o);
  }
  /// As allReduce, but only the root's out is written.
  void reduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op, int root,
              const CallOptions& o = {}) {
    collective({Kind::reduce, dtype, op, root, count}, b, o);
  }
  /// in (root's only): count, out: count.
  void broadcast(const Buffers& b, std::size_t count, DType dtype, int root,
                 const CallOptions& o = {}) {
    collective({Kind::broadcast, dtype, ReduceOp::sum, root, count}, b, o);
  }
  /// in: count, out: size * count, rank r's input at r * count.
  void allGather(const Buffers& b, std::size_t count, DType dtype, const CallOptions& o = {}) {
    collective({Kind::allGather, dtype, ReduceOp::sum, 0, count}, b, o);
  }
  /// in: size * count, out: count. Rank r gets the reduction of all ranks' block r.
  void reduceScatter(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                     const CallOptions& o = {}) {
    collective({Kind::reduceScatter, dtype, op, 0, count}, b, o);
  }
  /// in, out: size * count. Block j of rank i becomes block i of rank j. Not in place.
  void allToAll(const Buffers& b, std::size_t count, DType dtype, const CallOptions& o = {}) {
    collective({Kind::allToAll, dtype, ReduceOp::sum, 0, count}, b, o);
  }
  /// in: count, root's out: size * count.
  void gather(const Buffers& b, std::size_t count, DType dtype, int root,
              const CallOptions& o = {}) {
    collective({Kind::gather, dtype, ReduceOp::sum, root, count}, b, o);
  }
  /// root's in: size * count, out: count.
  void scatter(const Buffers& b, std::size_t count, DType dtype, int root,
               const CallOptions& o = {}) {
    collective({Kind::scatter, dtype, ReduceOp::sum, root, count}, b, o);
  }
  void barrier(const CallOptions& o = {}) { collective({}, {}, o); }

  /// in and out: count. One neighborhood for each held rank.
  void neighborAllReduce(const Buffers& b, std::size_t count, DType dtype,
                         std::span<const Neighborhood> neighborhoods, const CallOptions& o = {}) {
    run({.shape = {Kind::neighborAllReduce, dtype, ReduceOp::sum, 0, count},
         .buffers = b,
         .options = o,
         .neighborhoods = neighborhoods});
  }
  /// A collective with counts (core/counted.h); the shape's count is 0.
  void counted(const Shape& shape, Counted& counted, const CallOptions& o = {}) {
    run({.shape = shape, .options = o, .counted = &counted});
  }

  // ---- neighbor exchanges of communicators that hold one rank: see core/neighbors.h.

  void neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                         std::span<const NeighborBlock> sources, std::span<const int> destinations,
                         const CallOptions& o = {});
  void pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                  double selfWeight, double pairWeight, const CallOptions& o = {});

  // ---- point to point, for communicators that hold one rank. Messages of one (source, tag) arrive
  // in order. A receive may be longer than its message; a shorter one is ERR_MISMATCH on both.

  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            const CallOptions& o = {});
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   const CallOptions& o = {});

  /// From this many bytes on, messages may lie in GPU memory: sends to other ranks and receives of
  /// this capacity, whose shorter messages `copyIn` brings there. SIZE_MAX: never.
  virtual std::size_t leastGpuMessage() const { return SIZE_MAX; }

  // ---- memory and lifetime

  /// Memory that all ranks of the host can map, so collectives need no staging. 64-byte aligned,
  /// zeroed. Local: peers map it at its first use in a call. Freed by freeShared or at the end.
  virtual void* allocShared(std::size_t bytes) = 0;
  virtual void freeShared(void* memory) = 0;

  /// Collective. Ranks of equal color form a new communicator, ordered by (key, old rank); a color
  /// < 0 gets null. One color and key for each held rank; only for communicators that hold one.
  virtual std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) = 0;
  /// Collective, for communicators that hold one rank. The wire is independent of this
  /// communicator's calls and lifetime. Backends without wires throw ERR_UNSUPPORTED.
  virtual std::unique_ptr<Wire> openWire(const CallOptions& options = {});
  /// Collective, for communicators that hold one rank: memory that neighbors access without its
  /// help (core/window.h). The communicator must outlive it. Some backends throw ERR_UNSUPPORTED.
  virtual std::unique_ptr<Window> openWindow(const WindowSpec& spec,
                                             const CallOptions& options = {});
  /// Ends pending and later calls on all ranks with ERR_ABORTED and this reason. Thread-safe.
  virtual void abort(const std::string& reason) = 0;
  /// As abort(), but the calls fail with this error's code, rank and message. Composed
  /// communicators pass on the error of a part this way; the rank is not translated.
  virtual void fail(const Error& error) { abort(error.what()); }
  /// Fails waiting calls once `above` has ended on any of its ranks, for parts whose ranks hear of
  /// a failure through `above` only. `above` has the same backend and outlives this one. Does
  /// nothing in backends that cannot wait for both.
  virtual void follow(Communicator& /*above*/) {}
  /// Throws the error that the next call would fail with, if known without waiting: an abort, a
  /// dead rank. On the thread of the calls. A no-op in backends that learn of it only in calls.
  virtual void check(const char* /*op*/) {}
  /// Acts as if the held ranks' process had died: their calls end with ERR_CLOSED, the peers' with
  /// ERR_PEER_LOST. Thread-safe, also during a call: a worker thread that is terminated in an
  /// operation calls it. Backends that cannot tell the two apart abort.
  virtual void leave() { abort("a rank's JavaScript environment ended"); }
  /// Leaves in good order: later calls of peers that need this rank fail with ERR_PEER_LOST.
  /// Idempotent; no other thread may be in a call.
  virtual void close() = 0;

 protected:
  Communicator() = default;

  /// Runs counted collectives, neighborAllGather and pairGossip over other calls; else
  /// ERR_UNSUPPORTED.
  void compose(const Call& call);
};

}  // namespace gradlink

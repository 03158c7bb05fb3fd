// The one contract between backends and everything above them.
//
// A Communicator holds one rank (a process or thread of a job) or several (the devices of one
// process). Every call therefore takes one input and one output pointer for each rank held, in the
// order of heldRanks(). Calls block until the held ranks' part is done; all ranks of the
// communicator must make the same calls in the same order.
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

/// Memory of one call: in[i] and out[i] belong to heldRanks()[i]. in[i] == out[i] means in place
/// where input and output have the same length; for all-gather and gather in place means in == out
/// + rank * count, for reduce-scatter and scatter out == in + rank * count (NCCL's convention).
/// Otherwise they must not overlap. A pointer that its rank does not need (out on a non-root of
/// reduce, in on a non-root of scatter) may be null.
struct Buffers {
  std::span<const void* const> in;
  std::span<void* const> out;
};

inline constexpr double kDefaultTimeoutMs = 30000;

/// Copies what came to where it is wanted.
using CopyIn = std::function<void(void* to, const void* from, std::size_t bytes)>;

/// What every call may carry besides its data.
struct CallOptions {
  /// Milliseconds until ERR_TIMEOUT; the communicator's own default when negative.
  double timeoutMs = -1;
  /// What the caller named the call, which ranks hear of each other where their calls differ; null:
  /// nothing.
  const char* name = nullptr;
  /// Of a receive into a GPU's memory: see leastGpuMessage().
  const CopyIn* copyIn = nullptr;
};

/// One rank's part of a neighborAllReduce: out = (selfWeight * in + sum over sources of weight *
/// (what it sent)) / divisor. What a source sends is its input times the weight its own
/// `destinations` name for this rank.
struct Neighbor {
  int rank;
  double weight;
};
struct Neighborhood {
  double selfWeight = 1;
  std::vector<Neighbor> sources;
  std::vector<Neighbor> destinations;
  /// Whether the ranks' lists are compared before anything is sent. Where no rank wants it the
  /// caller vouches that they fit together: what does not is undefined, though it ends.
  bool check = true;
  /// What the sum is divided by, as an average of so many arrays is: before it is rounded or wraps.
  std::size_t divisor = 1;
};

/// What one source of a neighborAllGather sends.
struct NeighborBlock {
  int rank;
  std::size_t count;
};
/// One rank's part of a neighborAllGather: `count` elements of `in` go to each destination, what
/// the sources send comes one after the other into `out`, in their order.
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
  /// Which of the held ranks.
  std::size_t held;
  int peer;
  const void* in;
  void* out;
  std::size_t count;
  double selfWeight;
  double pairWeight;
};

/// Where a received message came from.
struct Received {
  int source;
  std::size_t count;
};

inline constexpr int kAnySource = -1;

/// A message that a held rank sends or receives.
struct Message {
  /// Which of the held ranks.
  std::size_t held;
  /// Of a receive it may be kAnySource.
  int peer;
  int tag;
  bool sends;
  DType dtype;
  std::size_t count;
  /// Read by a send alone.
  void* data;
  /// Set by a receive.
  Received got = {};
};

/// One call, from JavaScript to the backend. What its kind does not bring is empty; lists have an
/// entry for each held rank, in their order.
struct Call {
  Shape shape;
  /// Of collectives and neighborAllReduce.
  Buffers buffers = {};
  CallOptions options = {};
  /// Of sums of floats over NCCL: what inputs are multiplied by first; empty: by nothing.
  std::span<const double> scales = {};
  /// Of neighborAllReduce.
  std::span<const Neighborhood> neighborhoods = {};
  /// Of collectives with counts.
  Counted* counted = nullptr;
  /// Of neighborAllGather.
  std::span<const NeighborGather> gathers = {};
  /// Of pairGossip: of the held ranks that have a peer.
  std::span<const Gossip> pairs = {};
  /// One of send and of receive; of sendReceive as many as go together.
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
  /// "shm", "mpi" or "nccl".
  virtual const char* backend() const = 0;
  /// How long calls may take that do not say it themselves.
  virtual double timeoutMs() const { return kDefaultTimeoutMs; }

  /// Any of the calls below. The one that backends implement; nothing of it is checked yet. What a
  /// backend has no way of its own for it leaves to compose().
  virtual void run(const Call& call) = 0;

  // ---- collectives. `count` is in elements of `dtype`; what it counts is said at each.

  void collective(const Shape& shape, const Buffers& b, const CallOptions& o = {}) {
    run({.shape = shape, .buffers = b, .options = o});
  }
  /// in: count, out: count. out = op over all ranks' in, the same bits on every rank.
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
  /// in: size * count, out: count. Rank r gets the reduction of everybody's block r.
  void reduceScatter(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                     const CallOptions& o = {}) {
    collective({Kind::reduceScatter, dtype, op, 0, count}, b, o);
  }
  /// in and out: size * count. Block j of rank i's input becomes block i of rank j's output. Not in
  /// place.
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
  /// Returns when every rank has called it.
  void barrier(const CallOptions& o = {}) { collective({}, {}, o); }

  /// in and out: count. One neighborhood for each held rank.
  void neighborAllReduce(const Buffers& b, std::size_t count, DType dtype,
                         std::span<const Neighborhood> neighborhoods, const CallOptions& o = {}) {
    run({.shape = {Kind::neighborAllReduce, dtype, ReduceOp::sum, 0, count},
         .buffers = b,
         .options = o,
         .neighborhoods = neighborhoods});
  }
  /// A collective with counts, which core/counted.h describes; the shape's count is 0.
  void counted(const Shape& shape, Counted& counted, const CallOptions& o = {}) {
    run({.shape = shape, .options = o, .counted = &counted});
  }

  // ---- exchanges with some of the ranks, here of communicators that hold one rank: see
  // core/neighbors.h.

  void neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                         std::span<const NeighborBlock> sources, std::span<const int> destinations,
                         const CallOptions& o = {});
  void pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                  double selfWeight, double pairWeight, const CallOptions& o = {});

  // ---- point to point, here of communicators that hold one rank. Messages of one (source, tag)
  // arrive in order. A receive of a longer buffer takes a shorter message; the other way round is
  // ERR_MISMATCH on both sides.

  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            const CallOptions& o = {});
  /// source may be kAnySource.
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   const CallOptions& o = {});

  /// Messages of so many bytes and more may lie in a GPU's memory: sends to other ranks, and
  /// receives that may be so long, whose shorter messages `copyIn` brings there. SIZE_MAX: none
  /// may.
  virtual std::size_t leastGpuMessage() const { return SIZE_MAX; }

  // ---- memory and lifetime

  /// Memory that every rank of the host can map, so that collectives on it are not staged; 64-byte
  /// aligned, zeroed. Local: peers find it when they first meet it in a call. Lives until
  /// freeShared or the communicator's end.
  virtual void* allocShared(std::size_t bytes) = 0;
  virtual void freeShared(void* memory) = 0;

  /// Collective. Ranks of equal color form a new communicator, ordered by (key, old rank); color <
  /// 0 takes no part and gets null. One color and key for each held rank; only communicators that
  /// hold one rank can split.
  virtual std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) = 0;
  /// Collective, for communicators that hold one rank: messages between the same ranks, independent
  /// of this communicator's calls and of its end. Backends without them throw ERR_UNSUPPORTED.
  virtual std::unique_ptr<Wire> openWire(const CallOptions& options = {});
  /// Collective, for communicators that hold one rank: memory that neighbours write and read
  /// without this rank's help (core/window.h). The communicator outlives it. Backends without throw
  /// ERR_UNSUPPORTED.
  virtual std::unique_ptr<Window> openWindow(const WindowSpec& spec,
                                             const CallOptions& options = {});
  /// Ends pending and later calls on all ranks with ERR_ABORTED and this reason. Safe from any
  /// thread.
  virtual void abort(const std::string& reason) = 0;
  /// As abort(), but the calls end with this error's code, rank and message: for communicators that
  /// are made of others and pass on what ended one of them. The rank is taken as given.
  virtual void fail(const Error& error) { abort(error.what()); }
  /// Calls that wait end, with any error, once `above` has been ended on any of its ranks: for
  /// parts whose ranks hear of it through `above` alone. It is of the same backend and outlives
  /// this one. Backends that cannot wait for both do nothing.
  virtual void follow(Communicator& /*above*/) {}
  /// Throws what would end the next call for all ranks, where that is known without waiting: an
  /// abort, a rank whose process died. From the thread that makes the calls. Backends that learn of
  /// it only in a call do nothing.
  virtual void check(const char* /*op*/) {}
  /// As if the held ranks' process had died: their pending and later calls end with ERR_CLOSED, the
  /// peers' with ERR_PEER_LOST naming them. Safe from any thread, also while a call runs on
  /// another: it is what a worker thread that is terminated in mid-operation does. Backends that
  /// cannot tell the two apart abort.
  virtual void leave() { abort("a rank's JavaScript environment ended"); }
  /// Leaves in good order: later calls of peers that need this rank fail with ERR_PEER_LOST.
  /// Idempotent; no call may be running on another thread.
  virtual void close() = 0;

 protected:
  Communicator() = default;

  /// Runs a call over the others: collectives with counts, neighborAllGather, pairGossip. Others
  /// are ERR_UNSUPPORTED.
  void compose(const Call& call);
};

}  // namespace gradlink

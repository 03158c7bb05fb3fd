// Reducing and spreading over several hosts in pieces, so the network and the hosts overlap.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "core/hosts/hierarchical_templates.h"
#include "core/kernels/copy_bytes.h"
#include "core/kernels/partial.h"

namespace gradlink {
namespace {

// Large enough for the network's bandwidth, small enough to overlap and to stay in the caches.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// For calls that move one block for each rank: the size of all blocks, and the least of one.
constexpr std::size_t kBlocksBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastBlockBytes = std::size_t{16} << 10;
constexpr auto kLookEvery = std::chrono::milliseconds(50);

const std::byte* bytesAt(const void* base, std::size_t element, DType dtype) {
  return base == nullptr ? nullptr : static_cast<const std::byte*>(base) + element * sizeOf(dtype);
}
std::byte* bytesAt(void* base, std::size_t element, DType dtype) {
  return base == nullptr ? nullptr : static_cast<std::byte*>(base) + element * sizeOf(dtype);
}

struct Pair {
  Pair(const void* from, void* to) : in{from}, out{to} {}
  operator Buffers() const { return {in, out}; }
  const void* in[1];
  void* out[1];
};

Shape as(DType dtype, Shape shape) {
  shape.dtype = dtype;
  return shape;
}

}  // namespace

Hierarchical::Cut Hierarchical::cut(const Shape& shape, std::size_t blocks) {
  const std::size_t element = sizeOf(shape.dtype);
  const std::size_t most =
      blocks == 1 ? kPieceBytes : std::max(kLeastBlockBytes, kBlocksBytes / blocks);
  const std::size_t pieces = std::max<std::size_t>(1, (shape.count * element + most - 1) / most);
  // Whole cache lines of any element type, so only the last piece is odd.
  const std::size_t step = ((shape.count + pieces - 1) / pieces + 63) / 64 * 64;
  return {shape.count, std::min(step, shape.count)};
}

std::byte* Hierarchical::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

void Hierarchical::pipeline(const char* op, const Cut& cut, const Stage& gatherIn,
                            const Stage& travel, const Stage& spreadOut) {
  const std::size_t pieces = cut.pieces();
  if (pieces == 1) {
    gatherIn(cut.piece(0));
    if (leaders_) travel(cut.piece(0));
    return spreadOut(cut.piece(0));
  }
  const auto depart = [&](const Slice& piece) {
    auto task = std::make_shared<std::packaged_task<void()>>([&travel, piece] { travel(piece); });
    network_.post([task] { (*task)(); });
    return task->get_future();
  };
  // The network does not notice a rank of this host that fails meanwhile.
  const auto arrive = [&](std::future<void>& piece) {
    while (piece.wait_for(kLookEvery) == std::future_status::timeout)
      onNode(op, [&] { node_->check(op); });
    piece.get();
  };
  try {
    std::future<void> under;
    for (std::size_t k = 0; k <= pieces; ++k) {
      std::future<void> next;
      if (k < pieces) {
        gatherIn(cut.piece(k));
        if (leaders_) next = depart(cut.piece(k));
      }
      if (k > 0) {
        if (leaders_) arrive(under);
        spreadOut(cut.piece(k - 1));
      }
      under = std::move(next);
    }
  } catch (const Error& error) {
    // No transfer may still use the caller's memory when the call returns.
    fail(error);
    network_.drain();
    throw;
  }
}

void Hierarchical::runAllReduce(const RunningCall& call, const Buffers& b) {
  const DType dtype = call.shape.dtype;
  const ReduceOp step = stepOf(call.shape.op);
  const Partial partial(dtype, call.shape.op);
  const Cut pieces = cut(as(partial.dtype, call.shape), 1);
  const std::size_t pieceBytes = pieces.step * sizeOf(partial.dtype);
  std::byte* const wider = partial.isWider() ? scratch(2 * pieceBytes) : nullptr;
  const auto resultOf = [&](const Slice& p) { return bytesAt(b.out[0], p.at, dtype); };
  const auto sumOf = [&](const Slice& p) {
    return partial.isWider() ? wider + p.set() * pieceBytes : resultOf(p);
  };
  pipeline(
      call.op(), pieces,
      [&](const Slice& p) {
        const void* in = bytesAt(b.in[0], p.at, dtype);
        if (partial.isWider()) {
          partial.take(in, sumOf(p), p.count);
          in = sumOf(p);
        }
        onNode(call.op(), [&] {
          node_->reduce(Pair(in, sumOf(p)), p.count, partial.dtype, step, 0,
                        left(call, Step::node));
        });
      },
      [&](const Slice& p) {
        std::byte* const sum = sumOf(p);
        onLeaders(call.op(), [&] {
          leaders_->allReduce(Pair(sum, sum), p.count, partial.dtype, step,
                              left(call, Step::leaders));
        });
        partial.finish(sum, resultOf(p), p.count, static_cast<std::size_t>(size()));
      },
      [&](const Slice& p) {
        onNode(call.op(), [&] {
          node_->broadcast(Pair(resultOf(p), resultOf(p)), p.count, dtype, 0,
                           left(call, Step::result));
        });
      });
}

void Hierarchical::runReduce(const RunningCall& call, const Buffers& b) {
  const DType dtype = call.shape.dtype;
  const ReduceOp step = stepOf(call.shape.op);
  const int root = call.shape.root;
  const Partial partial(dtype, call.shape.op);
  const Cut pieces = cut(as(partial.dtype, call.shape), 1);
  const std::size_t pieceBytes = pieces.step * sizeOf(partial.dtype);
  const int rootNode = map_.nodeOf(root);
  const int rootLocal = map_.localOf(root);
  const bool withRoot = map_.ownNode() == rootNode;
  // The leader's partial sums go to the result if it is the root and the type is the same.
  const bool inResult = rank() == root && !partial.isWider();
  const bool needed = partial.isWider() || (leaders_ && !inResult);
  std::byte* const sums = needed ? scratch(2 * pieceBytes) : nullptr;
  const auto setOf = [&](const Slice& p) { return sums + p.set() * pieceBytes; };
  const auto resultOf = [&](const Slice& p) {
    return rank() == root ? bytesAt(b.out[0], p.at, dtype) : setOf(p);
  };
  const auto sumOf = [&](const Slice& p) { return inResult ? resultOf(p) : setOf(p); };
  pipeline(
      call.op(), pieces,
      [&](const Slice& p) {
        const void* in = bytesAt(b.in[0], p.at, dtype);
        if (partial.isWider()) {
          partial.take(in, sumOf(p), p.count);
          in = sumOf(p);
        }
        std::byte* const sum = leaders_ ? sumOf(p) : nullptr;
        onNode(call.op(), [&] {
          node_->reduce(Pair(in, sum), p.count, partial.dtype, step, 0, left(call, Step::node));
        });
      },
      [&](const Slice& p) {
        std::byte* const sum = sumOf(p);
        onLeaders(call.op(), [&] {
          leaders_->reduce(Pair(sum, sum), p.count, partial.dtype, step, rootNode,
                           left(call, Step::leaders));
        });
        if (withRoot) partial.finish(sum, resultOf(p), p.count, static_cast<std::size_t>(size()));
      },
      [&](const Slice& p) {
        if (!withRoot || rootLocal == 0) return;
        onNode(call.op(), [&] {
          const CallOptions options = left(call, Step::result);
          if (leaders_) node_->send(resultOf(p), p.count, dtype, rootLocal, 0, options);
          if (rank() == root)
            node_->receive(bytesAt(b.out[0], p.at, dtype), p.count, dtype, 0, 0, options);
        });
      });
}

void Hierarchical::runBroadcast(const RunningCall& call, const Buffers& b) {
  const DType dtype = call.shape.dtype;
  const int root = call.shape.root;
  const int rootNode = map_.nodeOf(root);
  const bool withRoot = map_.ownNode() == rootNode;
  const auto inNode = [&](const Slice& p, int from, Step step) {
    std::byte* const to = bytesAt(b.out[0], p.at, dtype);
    const void* const data = rank() == root ? bytesAt(b.in[0], p.at, dtype) : to;
    onNode(call.op(),
           [&] { node_->broadcast(Pair(data, to), p.count, dtype, from, left(call, step)); });
  };
  pipeline(
      call.op(), cut(call.shape, 1),
      [&](const Slice& p) {
        if (withRoot) inNode(p, map_.localOf(root), Step::node);
      },
      [&](const Slice& p) {
        std::byte* const data = bytesAt(b.out[0], p.at, dtype);
        onLeaders(call.op(), [&] {
          leaders_->broadcast(Pair(data, data), p.count, dtype, rootNode,
                              left(call, Step::leaders));
        });
      },
      [&](const Slice& p) {
        if (!withRoot) inNode(p, 0, Step::result);
      });
}

void Hierarchical::runAllGather(const RunningCall& call, const Buffers& b) {
  const DType dtype = call.shape.dtype;
  const std::size_t count = call.shape.count;
  const std::size_t element = sizeOf(dtype);
  const std::size_t widest = static_cast<std::size_t>(map_.widest());
  const Cut pieces = cut(call.shape, map_.slots());
  // All blocks in host order (smaller hosts leave some empty), then this host's.
  const std::size_t allBytes = map_.slots() * pieces.step * element;
  const std::size_t ownBytes = widest * pieces.step * element;
  std::byte* const all = scratch(2 * (allBytes + ownBytes));
  const auto blocksOf = [&](const Slice& p) { return all + p.set() * allBytes; };
  const auto ownOf = [&](const Slice& p) { return all + 2 * allBytes + p.set() * ownBytes; };
  pipeline(
      call.op(), pieces,
      [&](const Slice& p) {
        std::byte* const own = leaders_ ? ownOf(p) : nullptr;
        onNode(call.op(), [&] {
          node_->gather(Pair(bytesAt(b.in[0], p.at, dtype), own), p.count, dtype, 0,
                        left(call, Step::node));
        });
      },
      [&](const Slice& p) {
        const Pair buffers(ownOf(p), blocksOf(p));
        onLeaders(call.op(), [&] {
          leaders_->allGather(buffers, widest * p.count, dtype, left(call, Step::leaders));
        });
      },
      [&](const Slice& p) {
        std::byte* const blocks = blocksOf(p);
        onNode(call.op(), [&] {
          node_->broadcast(Pair(blocks, blocks), map_.slots() * p.count, dtype, 0,
                           left(call, Step::result));
        });
        for (int r = 0; r < size(); ++r) {
          std::byte* const to =
              bytesAt(b.out[0], static_cast<std::size_t>(r) * count + p.at, dtype);
          copyBytes(to, bytesAt(blocks, map_.slotOf(r) * p.count, dtype), p.count * element);
        }
      });
}

void Hierarchical::runReduceScatter(const RunningCall& call, const Buffers& b) {
  const DType dtype = call.shape.dtype;
  const ReduceOp step = stepOf(call.shape.op);
  const Partial partial(dtype, call.shape.op);
  const std::size_t count = call.shape.count;
  const std::size_t element = sizeOf(partial.dtype);
  const std::size_t widest = static_cast<std::size_t>(map_.widest());
  const Cut pieces = cut(as(partial.dtype, call.shape), map_.slots());
  const bool asGiven = pieces.pieces() == 1 && map_.slotsAreRanks() && !partial.isWider();
  const std::size_t allBytes = map_.slots() * pieces.step * element;
  const std::size_t ownBytes = widest * pieces.step * element;
  // The input in host order, then the leader's sums and this host's share of them.
  std::byte* const packed = scratch(leaders_ ? 3 * allBytes + 2 * ownBytes : allBytes);
  const auto sumsOf = [&](const Slice& p) { return packed + (1 + p.set()) * allBytes; };
  const auto resultOf = [&](const Slice& p) { return packed + 3 * allBytes + p.set() * ownBytes; };
  pipeline(
      call.op(), pieces,
      [&](const Slice& p) {
        const void* blocks = b.in[0];
        if (!asGiven) {
          for (int r = 0; r < size(); ++r) {
            partial.take(bytesAt(b.in[0], static_cast<std::size_t>(r) * count + p.at, dtype),
                         bytesAt(packed, map_.slotOf(r) * p.count, partial.dtype), p.count);
          }
          blocks = packed;
        }
        std::byte* const sums = leaders_ ? sumsOf(p) : nullptr;
        onNode(call.op(), [&] {
          node_->reduce(Pair(blocks, sums), map_.slots() * p.count, partial.dtype, step, 0,
                        left(call, Step::node));
        });
      },
      [&](const Slice& p) {
        const Pair buffers(sumsOf(p), resultOf(p));
        onLeaders(call.op(), [&] {
          leaders_->reduceScatter(buffers, widest * p.count, partial.dtype, step,
                                  left(call, Step::leaders));
        });
        partial.finish(resultOf(p), resultOf(p), widest * p.count,
                       static_cast<std::size_t>(size()));
      },
      [&](const Slice& p) {
        const std::byte* const result = leaders_ ? resultOf(p) : nullptr;
        onNode(call.op(), [&] {
          node_->scatter(Pair(result, bytesAt(b.out[0], p.at, dtype)), p.count, dtype, 0,
                         left(call, Step::result));
        });
      });
}

}  // namespace gradlink

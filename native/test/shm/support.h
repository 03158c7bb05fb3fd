// What the engine's tests share: every collective as data, inputs that differ by rank and index,
// and the results they must give, computed without the engine.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "core/communicator.h"
#include "core/hosts/node_map.h"
#include "core/kernels/identity.h"
#include "core/kernels/reduce_kernels.h"
#include "test/message_support.h"
#include "test/reference.h"

namespace gradlink::test {

using Bytes = std::vector<std::byte>;

/// In the order of Kind, but for the last.
enum class Op {
  allReduce,
  reduce,
  broadcast,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  scan,
  exscan,
  neighbor
};
inline constexpr Op kAllOps[] = {Op::allReduce,     Op::reduce,   Op::broadcast, Op::allGather,
                                 Op::reduceScatter, Op::allToAll, Op::gather,    Op::scatter,
                                 Op::scan,          Op::exscan,   Op::neighbor};
inline const char* nameOf(Op op) {
  constexpr const char* kNames[] = {"allReduce",     "reduce",   "broadcast", "allGather",
                                    "reduceScatter", "allToAll", "gather",    "scatter",
                                    "scan",          "exscan",   "neighbor"};
  return kNames[static_cast<int>(op)];
}

struct Case {
  Op op;
  int size;
  std::size_t count;
  DType dtype = DType::float32;
  ReduceOp reduceOp = ReduceOp::sum;
  int root = 0;
  bool inPlace = false;
  /// The host of each rank where sums are promised to the bit, host by host and in the order of
  /// ranks inside each; none where any order will do.
  std::vector<int> hosts = {};

  /// Whether the inputs are such that each order of a sum, and each rounding between, gives other
  /// bits.
  bool showsOrder() const {
    return !hosts.empty() && op != Op::neighbor && hasOp(static_cast<Kind>(op)) &&
           reduceOp != ReduceOp::prod;
  }
  std::size_t block() const { return count * sizeOf(dtype); }
  std::size_t inBlocks(int rank) const {
    if (op == Op::reduceScatter || op == Op::allToAll) return static_cast<std::size_t>(size);
    if (op == Op::scatter) return rank == root ? static_cast<std::size_t>(size) : 0;
    if (op == Op::broadcast) return rank == root ? 1 : 0;
    return 1;
  }
  std::size_t outBlocks(int rank) const {
    if (op == Op::allGather || op == Op::allToAll) return static_cast<std::size_t>(size);
    if (op == Op::gather) return rank == root ? static_cast<std::size_t>(size) : 0;
    if (op == Op::reduce) return rank == root ? 1 : 0;
    return 1;
  }
  bool canBeInPlace() const { return op != Op::allToAll; }
  std::string text() const {
    return std::string(nameOf(op)) + " size " + std::to_string(size) + " count " +
           std::to_string(count) + " " + gradlink::nameOf(dtype) + " " +
           gradlink::nameOf(reduceOp) + " root " + std::to_string(root) +
           (inPlace ? " in place" : "");
  }
};

/// A small number, exact in every type; prod of seven of them fits in 16 bits.
inline int valueOf(int rank, std::size_t index) {
  return static_cast<int>((index * 7 + static_cast<std::size_t>(rank) * 3 + index / 64) % 4) + 1;
}

/// Inputs repeat after so many elements: valueOf() after 256, and with a turn of three.
inline constexpr std::size_t kPeriod = 768;

inline Bytes input(const Case& c, int rank) {
  const std::size_t elements = c.inBlocks(rank) * c.count;
  const std::size_t first = std::min(elements, kPeriod);
  Bytes bytes(elements * sizeOf(c.dtype));
  if (isFloat(c.dtype)) {
    // In turn, by rank and element: a small value, one beside which that is nothing, its opposite.
    // Of float16 the largest, two of which overflow; of bfloat16 256, after which comes 258.
    constexpr double kLarge[] = {65504, 256, 1e8, 1e17};
    const double large = kLarge[static_cast<int>(c.dtype) - static_cast<int>(DType::float16)];
    for (std::size_t i = 0; i < first; ++i) {
      const auto turn = c.showsOrder() ? (i + static_cast<std::size_t>(rank)) % 3 : 0;
      const double value = turn == 0 ? valueOf(rank, i) : turn == 1 ? large : -large;
      reference::put(bytes.data(), i, c.dtype, value);
    }
  } else {
    reference::onType(c.dtype, [&]<class T>(T) {
      if constexpr (std::is_integral_v<T>) {
        // Of averages so large that sums wrap, of signed and of unsigned ones.
        using Bits = std::make_unsigned_t<T>;
        const Bits lift =
            c.reduceOp == ReduceOp::avg ? std::numeric_limits<Bits>::max() / 2 - 4 : 0;
        for (std::size_t i = 0; i < first; ++i) {
          reference::write(bytes.data(), i, static_cast<Bits>(lift + valueOf(rank, i)));
        }
      }
    });
  }
  for (std::size_t done = first; done < elements; done += kPeriod) {
    std::memcpy(bytes.data() + done * sizeOf(c.dtype), bytes.data(),
                std::min(elements - done, kPeriod) * sizeOf(c.dtype));
  }
  return bytes;
}

/// A ring: each rank hears from its left and its right neighbor (the same one where there are two
/// ranks).
inline Neighborhood ringOf(int rank, int size) {
  Neighborhood ring;
  ring.selfWeight = 0.5;
  const int left = (rank + size - 1) % size;
  const int right = (rank + 1) % size;
  if (size > 1) {
    ring.sources.push_back({left, 2.0});
    ring.destinations.push_back({right, 0.25 * (rank + 1)});
  }
  if (size > 2) {
    ring.sources.push_back({right, 1.0});
    ring.destinations.push_back({left, 4.0});
  }
  return ring;
}

/// What rank's output must hold, from everybody's inputs.
inline Bytes expected(const Case& c, int rank) {
  std::vector<Bytes> in;
  for (int r = 0; r < c.size; ++r) in.push_back(input(c, r));
  Bytes out(c.outBlocks(rank) * c.block());
  auto copy = [&](std::size_t block, const std::byte* from) {
    if (c.block() > 0) std::memcpy(out.data() + block * c.block(), from, c.block());
  };
  auto reduced = [&](std::size_t block) {
    if (c.count == 0) return;
    const auto reduce = [&](void* to, const std::vector<const void*>& src, ReduceOp by) {
      reduceMany({&to, 1}, src, c.count, c.dtype, by);
    };
    const NodeMap map(c.hosts.empty() ? std::vector<int>(in.size()) : c.hosts, 0);
    std::vector<const void*> src;
    // Halves are summed as float32, which holds these sums whole: rounded once, as on one host.
    const bool inOneStep = isHalf(c.dtype) || (c.reduceOp == ReduceOp::avg && !isFloat(c.dtype));
    if (map.nodes() == 1 || map.widest() == 1 || inOneStep) {
      for (const Bytes& bytes : in) src.push_back(bytes.data() + block * c.block());
      return reduce(out.data(), src, c.reduceOp);
    }
    std::vector<Bytes> sums(static_cast<std::size_t>(map.nodes()), Bytes(c.block()));
    std::vector<const void*> ofHosts;
    for (int host = 0; host < map.nodes(); ++host) {
      src.clear();
      for (const int r : map.members(host)) {
        src.push_back(in[static_cast<std::size_t>(r)].data() + block * c.block());
      }
      Bytes& sum = sums[static_cast<std::size_t>(host)];
      reduce(sum.data(), src, stepOf(c.reduceOp));
      ofHosts.push_back(sum.data());
    }
    reduce(out.data(), ofHosts, stepOf(c.reduceOp));
    if (c.reduceOp == ReduceOp::avg) divideBy(out.data(), c.count, c.dtype, in.size());
  };
  const auto me = static_cast<std::size_t>(rank);
  const auto root = static_cast<std::size_t>(c.root);
  switch (c.op) {
    case Op::allReduce:
      reduced(0);
      break;
    case Op::reduce:
      if (rank == c.root) reduced(0);
      break;
    case Op::reduceScatter:
      reduced(me);
      break;
    case Op::scan:
    case Op::exscan: {
      std::vector<const void*> src;
      for (int r = 0; r < rank + (c.op == Op::scan ? 1 : 0); ++r) {
        src.push_back(in[static_cast<std::size_t>(r)].data());
      }
      void* const dst[] = {out.data()};
      if (src.empty()) {
        fillIdentity(out.data(), c.count, c.dtype, c.reduceOp);
      } else if (c.count > 0) {
        reduceMany(dst, src, c.count, c.dtype, c.reduceOp);
      }
      break;
    }
    case Op::broadcast:
      copy(0, in[root].data());
      break;
    case Op::gather:
      if (rank != c.root) break;
      [[fallthrough]];
    case Op::allGather:
      for (std::size_t r = 0; r < in.size(); ++r) copy(r, in[r].data());
      break;
    case Op::allToAll:
      for (std::size_t r = 0; r < in.size(); ++r) copy(r, in[r].data() + me * c.block());
      break;
    case Op::scatter:
      copy(0, in[root].data() + me * c.block());
      break;
    case Op::neighbor: {
      const Neighborhood own = ringOf(rank, c.size);
      std::vector<const void*> src{in[me].data()};
      std::vector<double> weights{own.selfWeight};
      for (const Neighbor& s : own.sources) {
        src.push_back(in[static_cast<std::size_t>(s.rank)].data());
        for (const Neighbor& d : ringOf(s.rank, c.size).destinations) {
          if (d.rank == rank) weights.push_back(s.weight * d.weight);
        }
      }
      if (c.count > 0) weightedSum(out.data(), src, weights, c.count, c.dtype);
      break;
    }
  }
  return out;
}

/// One rank's memory for a case. `allocate` may give shared memory; null takes the heap.
class RankBuffers {
 public:
  using Allocate = std::function<std::byte*(std::size_t)>;

  RankBuffers(const Case& c, int rank, const Allocate& allocate = nullptr) : case_(c), rank_(rank) {
    const Bytes data = input(c, rank);
    inBytes_ = data.size();
    outBytes_ = c.outBlocks(rank) * c.block();
    auto make = [&](std::size_t bytes, Bytes& own) {
      if (allocate) return allocate(bytes);
      // One byte more, so that the address is never null; exact otherwise, for AddressSanitizer's
      // sake.
      own.resize(std::max<std::size_t>(bytes, 1));
      return own.data();
    };
    const auto me = static_cast<std::size_t>(rank);
    if (c.inPlace && inBytes_ > 0 && outBytes_ > 0) {
      base_ = make(std::max(inBytes_, outBytes_), ownIn_);
      in_ = out_ = base_;
      if (c.op == Op::allGather || c.op == Op::gather) in_ = base_ + me * c.block();
      if (c.op == Op::reduceScatter || c.op == Op::scatter) out_ = base_ + me * c.block();
    } else {
      in_ = make(inBytes_, ownIn_);
      out_ = make(outBytes_, ownOut_);
    }
    refill();
  }

  void refill() {
    const Bytes data = input(case_, rank_);
    if (outBytes_ > 0) std::memset(out_, 0xee, outBytes_);
    if (!data.empty()) std::memcpy(in_, data.data(), data.size());
  }
  const void* in() const { return inBytes_ == 0 && case_.inBlocks(rank_) == 0 ? nullptr : in_; }
  void* out() const { return outBytes_ == 0 && case_.outBlocks(rank_) == 0 ? nullptr : out_; }
  /// Empty when right, else what is wrong.
  std::string verify() const {
    const Bytes want = expected(case_, rank_);
    // The bytes one by one only where they differ: tests are compiled without optimization.
    const bool same = want.empty() || std::memcmp(want.data(), out_, want.size()) == 0;
    for (std::size_t i = 0; i < want.size() && !same; ++i) {
      if (want[i] == out_[i]) continue;
      return case_.text() + ": rank " + std::to_string(rank_) + " is wrong in element " +
             std::to_string(i / sizeOf(case_.dtype));
    }
    const Bytes before = input(case_, rank_);
    if (!case_.inPlace && !before.empty() && std::memcmp(before.data(), in_, before.size()) != 0) {
      return case_.text() + ": rank " + std::to_string(rank_) + "'s input was changed";
    }
    return {};
  }

 private:
  Case case_;
  int rank_;
  Bytes ownIn_;
  Bytes ownOut_;
  std::byte* base_ = nullptr;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::size_t inBytes_ = 0;
  std::size_t outBytes_ = 0;
};

/// Calls the case's collective on a communicator that holds all or one of its ranks.
inline void call(Communicator& comm, const Case& c, const Buffers& b,
                 const CallOptions& options = {}) {
  if (c.op == Op::neighbor) {
    std::vector<Neighborhood> rings;
    for (int r : comm.heldRanks()) rings.push_back(ringOf(r, c.size));
    return comm.neighborAllReduce(b, c.count, c.dtype, rings, options);
  }
  Shape shape{static_cast<Kind>(c.op), c.dtype, ReduceOp::sum, 0, c.count};
  if (hasOp(shape.kind)) shape.op = c.reduceOp;
  if (hasRoot(shape.kind)) shape.root = c.root;
  comm.collective(shape, b, options);
}

/// Runs a case on one rank and says what is wrong.
inline std::string runRank(Communicator& comm, const Case& c,
                           const RankBuffers::Allocate& allocate = nullptr) {
  RankBuffers buffers(c, comm.heldRanks()[0], allocate);
  const void* in[] = {buffers.in()};
  void* out[] = {buffers.out()};
  call(comm, c, {in, out});
  return buffers.verify();
}

inline std::string runAll(Communicator& comm, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    if (std::string wrong = runRank(comm, c); !wrong.empty()) return wrong;
  }
  return {};
}

/// In place.
inline void sumFloats(Communicator& comm, float* data, std::size_t count,
                      const CallOptions& options = {}) {
  const void* const in[] = {data};
  void* const out[] = {data};
  comm.allReduce({in, out}, count, DType::float32, ReduceOp::sum, options);
}

/// How a collective's case is called in a suite of (Op, int).
inline constexpr auto kNameOfCase = [](const auto& info) {
  return std::string(nameOf(std::get<0>(info.param))) + std::to_string(std::get<1>(info.param));
};

/// Runs a case on a communicator that holds all its ranks.
inline std::string runGroup(Communicator& comm, const Case& c) {
  std::vector<RankBuffers> buffers;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (int r = 0; r < c.size; ++r) {
    buffers.emplace_back(c, r);
    in.push_back(buffers.back().in());
    out.push_back(buffers.back().out());
  }
  call(comm, c, {in, out});
  for (const RankBuffers& b : buffers) {
    if (std::string wrong = b.verify(); !wrong.empty()) return wrong;
  }
  return {};
}

/// The cases where sums are promised to the bit.
inline std::vector<Case> toTheBit(std::vector<Case> cases, const std::vector<int>& hosts = {}) {
  for (Case& c : cases) {
    c.hosts = hosts.empty() ? std::vector<int>(static_cast<std::size_t>(c.size)) : hosts;
  }
  return cases;
}

/// How many of the reduce ops a collective takes: scans have no avg, the last of them.
inline int opsOf(Op op) {
  if (op == Op::neighbor || !hasOp(static_cast<Kind>(op))) return 1;
  return isScan(static_cast<Kind>(op)) ? static_cast<int>(ReduceOp::avg) : kReduceOpCount;
}

/// All element types, and for reductions all ops, of one collective at one size.
inline std::vector<Case> everyType(Op op, int size, std::size_t count) {
  std::vector<Case> cases;
  for (DType dtype : kHostDTypes) {
    for (int r = 0; r < opsOf(op); ++r) {
      cases.push_back({op, size, count, dtype, static_cast<ReduceOp>(r), size - 1, false});
    }
  }
  return cases;
}

/// Lengths, roots and places of one collective at one size, in float32 and in int8 (the smallest
/// element).
inline std::vector<Case> everyLength(Op op, int size, const std::vector<std::size_t>& counts) {
  std::vector<Case> cases;
  for (std::size_t count : counts) {
    for (DType dtype : {DType::float32, DType::int8}) {
      for (bool inPlace : {false, true}) {
        Case c{op, size, count, dtype, ReduceOp::sum, static_cast<int>(count) % size, inPlace};
        if (!inPlace || c.canBeInPlace()) cases.push_back(c);
      }
    }
  }
  return cases;
}

}  // namespace gradlink::test

#include "core/direct.h"

#include <algorithm>

#include "core/kernels/identity.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink {
namespace {

// The pointers of one kernel call. A vector would cost an allocation in every 8-byte call.
template <typename T>
class KernelPointers {
 public:
  void push(T pointer) {
    if (used_ < kInline) {
      inline_[used_++] = pointer;
      return;
    }
    if (used_ == kInline) overflow_.assign(inline_, inline_ + kInline);
    overflow_.push_back(pointer);
    ++used_;
  }
  std::span<const T> span() const { return {used_ <= kInline ? inline_ : overflow_.data(), used_}; }
  bool empty() const { return used_ == 0; }

 private:
  static constexpr std::size_t kInline = 16;
  T inline_[kInline];
  std::vector<T> overflow_;
  std::size_t used_ = 0;
};

struct Range {
  const DirectCall& call;
  std::size_t begin;
  std::size_t end;
  bool streaming;

  std::size_t size() const { return call.in.size(); }
  std::size_t elementSize() const { return sizeOf(call.shape.dtype); }
  std::size_t bytes() const { return (end - begin) * elementSize(); }
  const void* in(std::size_t rank, std::size_t block) const {
    return call.in[rank].at(block, begin, elementSize());
  }
  void* out(std::size_t rank, std::size_t block) const {
    return call.out[rank].at(block, begin, elementSize());
  }
  bool writes(std::size_t rank) const { return call.out[rank].base != nullptr; }

  void copy(void* dst, const void* src) const {
    if (dst == src) return;
    void* const dsts[] = {dst};
    copyMany(dsts, src, bytes(), streaming);
  }
  /// Reduces block `block` of every input in rank order.
  void reduce(std::span<void* const> dst, std::size_t block) const {
    reduceFirst(size(), dst, block);
  }
  /// The same over the first `ranks` ranks only.
  void reduceFirst(std::size_t ranks, std::span<void* const> dst, std::size_t block) const {
    KernelPointers<const void*> src;
    for (std::size_t r = 0; r < ranks; ++r) src.push(in(r, block));
    reduceMany(dst, src.span(), end - begin, call.shape.dtype, call.shape.op, streaming);
  }
};

void allReduce(const Range& range) {
  KernelPointers<void*> dst;
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (range.writes(r)) dst.push(range.out(r, 0));
  }
  if (!dst.empty()) range.reduce(dst.span(), 0);
}

void reduceScatter(const Range& range) {
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (!range.writes(r)) continue;
    void* const dst[] = {range.out(r, 0)};
    range.reduce(dst, r);
  }
}

void broadcast(const Range& range, std::size_t root) {
  KernelPointers<void*> dst;
  const void* src = range.in(root, 0);
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (range.writes(r) && range.out(r, 0) != src) dst.push(range.out(r, 0));
  }
  if (!dst.empty()) copyMany(dst.span(), src, range.bytes(), range.streaming);
}

void gatherTo(const Range& range, std::size_t destination) {
  if (!range.writes(destination)) return;
  for (std::size_t r = 0; r < range.size(); ++r)
    range.copy(range.out(destination, r), range.in(r, 0));
}

void allGather(const Range& range) {
  for (std::size_t r = 0; r < range.size(); ++r) {
    KernelPointers<void*> dst;
    for (std::size_t d = 0; d < range.size(); ++d) {
      if (range.writes(d) && range.out(d, r) != range.in(r, 0)) dst.push(range.out(d, r));
    }
    if (!dst.empty()) copyMany(dst.span(), range.in(r, 0), range.bytes(), range.streaming);
  }
}

void scatterFrom(const Range& range, std::size_t root) {
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (range.writes(r)) range.copy(range.out(r, 0), range.in(root, r));
  }
}

void allToAll(const Range& range) {
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (!range.writes(r)) continue;
    for (std::size_t s = 0; s < range.size(); ++s) range.copy(range.out(r, s), range.in(s, r));
  }
}

// From the last rank down, so in place no input is overwritten before its last use. Each result is
// computed anew: half types round once, at the end.
void scan(const Range& range) {
  const Shape& shape = range.call.shape;
  for (std::size_t r = range.size(); r-- > 0;) {
    if (!range.writes(r)) continue;
    void* const dst[] = {range.out(r, 0)};
    const std::size_t ranks = scannedRanks(shape.kind, static_cast<int>(r));
    if (ranks == 0) {
      fillIdentity(dst[0], range.end - range.begin, shape.dtype, shape.op);
    } else {
      range.reduceFirst(ranks, dst, 0);
    }
  }
}

void neighborAllReduce(const Range& range) {
  std::vector<WeightedTerm> terms;
  std::vector<WeightedOutput> outputs;
  for (std::size_t r = 0; r < range.size(); ++r) {
    if (!range.writes(r)) continue;
    const WeightRow& row = range.call.weights[r];
    outputs.push_back({range.out(r, 0), row.terms.size(), row.divisor});
    for (const auto& [rank, weight] : row.terms)
      terms.push_back({range.in(static_cast<std::size_t>(rank), 0), weight});
  }
  weightedSums(outputs, terms, range.end - range.begin, range.call.shape.dtype, range.streaming);
}

void run(const Range& range) {
  const DirectCall& call = range.call;
  const auto root = static_cast<std::size_t>(call.shape.root);
  switch (call.shape.kind) {
    case Kind::allReduce:
      return allReduce(range);
    case Kind::reduce:
      if (range.writes(root)) {
        void* const dst[] = {range.out(root, 0)};
        range.reduce(dst, 0);
      }
      return;
    case Kind::broadcast:
      return broadcast(range, root);
    case Kind::allGather:
    case Kind::split:
      return allGather(range);
    case Kind::reduceScatter:
      return reduceScatter(range);
    case Kind::allToAll:
      return allToAll(range);
    case Kind::gather:
      return gatherTo(range, root);
    case Kind::scatter:
      return scatterFrom(range, root);
    case Kind::scan:
    case Kind::exscan:
      return scan(range);
    case Kind::neighborAllReduce:
      return neighborAllReduce(range);
    default:
      return;
  }
}

std::size_t writtenBytes(const DirectCall& call, std::size_t elements) {
  std::size_t blocks = 0;
  for (std::size_t r = 0; r < call.out.size(); ++r) {
    if (call.out[r].base == nullptr) continue;
    blocks += outBlocks(call.shape, static_cast<int>(call.out.size()), static_cast<int>(r));
  }
  return blocks * elements * sizeOf(call.shape.dtype);
}

}  // namespace

void runDirect(const DirectCall& call, std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  const std::size_t bytes = call.results.isPlain() ? 0 : writtenBytes(call, end - begin);
  call.results.write(bytes, [&](bool streaming) { run({call, begin, end, streaming}); });
}

std::size_t partElements(const Shape& shape, int size, std::size_t bytes) {
  std::size_t blocks = 0;
  for (int r = 0; r < size; ++r)
    blocks += std::max(inBlocks(shape, size, r), outBlocks(shape, size, r));
  const std::size_t line = 64 / sizeOf(shape.dtype);
  const std::size_t elements = bytes / sizeOf(shape.dtype) / std::max<std::size_t>(blocks, 1);
  return std::max(line, elements / line * line);
}

ResultStores resultStores(const Shape& shape, int ranks, bool inPlace) {
  if (inPlace) return {};
  std::size_t bytes = 0;
  for (int r = 0; r < ranks; ++r)
    bytes += outBlocks(shape, ranks, r) * shape.count * sizeOf(shape.dtype);
  return {bytes, similarCallsKey(shape, 0, ranks)};
}

}  // namespace gradlink

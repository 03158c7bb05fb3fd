// Every collective as one function over addressable memory. All engines end here: the local group
// with all callers' buffers, threads with the buffers their peers posted, processes with mapped
// regions or staged copies, MPI with what short announcements bring.
#pragma once

#include <cstddef>
#include <span>

#include "core/call.h"

namespace gradlink {

/// Elements of one rank's buffer: element i of block b lies at base + (b * stride + i - origin)
/// elements. A whole buffer has stride = count and origin = 0; a staged chunk of it starts at
/// `origin`.
template <typename Byte>
struct BasicView {
  Byte* base = nullptr;
  std::size_t stride = 0;
  std::size_t origin = 0;

  Byte* at(std::size_t block, std::size_t index, std::size_t elementSize) const {
    return base + (block * stride + index - origin) * elementSize;
  }
};
using InView = BasicView<const std::byte>;
using OutView = BasicView<std::byte>;

struct DirectCall {
  Shape shape;
  /// One each for every rank; an input that the call does not need, and an output that is not to be
  /// computed here, has a null base.
  std::span<const InView> in;
  std::span<const OutView> out;
  /// neighborAllReduce only: one row a rank.
  std::span<const WeightRow> weights;
  /// Write around the caches: for results larger than they are.
  bool streaming = false;
};

/// Computes the elements begin..end of every block of every output given. Disjoint ranges may run
/// at the same time.
void runDirect(const DirectCall& call, std::size_t begin, std::size_t end);

/// Elements in which to cut `count` so that a part moves about `bytes` bytes over all ranks, in
/// whole cache lines.
std::size_t partElements(const Shape& shape, int size, std::size_t bytes);

/// Whether results of this many bytes a rank should bypass the caches, and ranks work on the call
/// in place.
bool wantsStreaming(const Shape& shape, int size);

}  // namespace gradlink

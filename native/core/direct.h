// Every collective as one function over addressable memory, where all engines end: threads with
// buffers that peers announced, processes with mapped or staged ones, MPI with small announcements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/call.h"
#include "core/kernels/result_stores.h"

namespace gradlink {

/// One rank's buffer: element i of block b lies at base + (b * stride + i - origin) elements. A
/// whole buffer has stride = count and origin = 0; a staged chunk starts at `origin`.
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
  /// One for each rank. Null base: an unneeded input, or an output that another caller computes.
  std::span<const InView> in;
  std::span<const OutView> out;
  /// neighborAllReduce only: one row for each rank.
  std::span<const WeightRow> weights;
  ResultStores results = {};
};

/// For the results of a call. `ranks`: whose results lie in this machine's memory; `inPlace`: all
/// of them replace inputs.
ResultStores resultStores(const Shape& shape, int ranks, bool inPlace);

/// Computes elements begin..end of every block. Disjoint ranges may run concurrently.
void runDirect(const DirectCall& call, std::size_t begin, std::size_t end);

/// The part size in elements, in whole cache lines, that moves about `bytes` bytes over all ranks.
std::size_t partElements(const Shape& shape, int size, std::size_t bytes);

}  // namespace gradlink

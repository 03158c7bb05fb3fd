// Every collective as one function over addressable memory, where all engines end: threads with
// buffers that peers announced, processes with mapped or staged ones, MPI with small announcements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/call.h"
#include "core/kernels/store_style.h"

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

/// How the results of a call are stored. Those that outgrow the caches bypass them if that has been
/// faster lately, in similar calls on this thread: it follows from no property of the machine. In a
/// virtual machine with a third-level cache of 300 MiB, 64 and 128 MiB of results took twice as
/// long through the caches (Xeon, November 2026, out of place).
class ResultStores {
 public:
  /// Plainly.
  ResultStores() = default;
  /// `ranks`: whose results lie in this machine's memory; `inPlace`: all of them replace inputs.
  ResultStores(const Shape& shape, int ranks, bool inPlace);

  bool isPlain() const { return key_ == 0; }
  /// Calls `write(streaming)` for `bytes` bytes of results.
  template <class Write>
  void write(std::size_t bytes, Write write) const {
    if (isPlain()) return write(false);
    StoreStyle& style = styleOf(key_);
    // Shorter ones cannot be timed.
    if (bytes < kFewestTimedBytes) return write(style.streaming());
    style.write(bytes, write);
  }

 private:
  static constexpr std::size_t kFewestTimedBytes = 8 << 10;
  static StoreStyle& styleOf(std::uint32_t key);

  /// Of similarCallsKey(); 0: plainly.
  std::uint32_t key_ = 0;
};

struct DirectCall {
  Shape shape;
  /// One for each rank. Null base: an unneeded input, or an output that another caller computes.
  std::span<const InView> in;
  std::span<const OutView> out;
  /// neighborAllReduce only: one row for each rank.
  std::span<const WeightRow> weights;
  ResultStores results = {};
};

/// Computes elements begin..end of every block. Disjoint ranges may run concurrently.
void runDirect(const DirectCall& call, std::size_t begin, std::size_t end);

/// The part size in elements, in whole cache lines, that moves about `bytes` bytes over all ranks.
std::size_t partElements(const Shape& shape, int size, std::size_t bytes);

}  // namespace gradlink

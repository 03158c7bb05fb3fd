// How results are stored that may outgrow the caches.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/kernels/store_style.h"

namespace gradlink {

/// Results that outgrow the caches bypass them if that has been faster lately, in similar work on
/// this thread: it follows from no property of the machine. In a virtual machine with a third-level
/// cache of 300 MiB, results took twice as long through the caches (Xeon, November 2026): 64 and
/// 128 MiB of all-reduces out of place, and the sums of stores whose arrays have 72 to 300 MiB.
class ResultStores {
 public:
  /// Plainly.
  ResultStores() = default;
  /// `touched`: the bytes of all arrays that are accessed before a result is read again. `work`:
  /// equal for what costs alike for each byte. Of a call similarCallsKey(), of a store kStoreWorks
  /// and a number below 2^24, which no call has.
  ResultStores(std::size_t touched, std::uint32_t work) {
    if (outgrowsCaches(touched)) {
      key_ = (std::uint64_t{work} << 6 | static_cast<std::uint64_t>(std::bit_width(touched))) << 6;
    }
  }

  static constexpr std::uint32_t kStoreWorks = 0xff000000;

  bool isPlain() const { return key_ == 0; }
  /// Calls `write(streaming)` for `bytes` bytes of results.
  template <class Write>
  void write(std::size_t bytes, Write write) const {
    // Fewer cannot be timed.
    if (isPlain() || bytes < kFewestTimedBytes) return write(false);
    styleOf(key_ | static_cast<std::uint64_t>(std::bit_width(bytes))).write(bytes, write);
  }

 private:
  static constexpr std::size_t kFewestTimedBytes = 8 << 10;
  static bool outgrowsCaches(std::size_t bytes);
  static StoreStyle& styleOf(std::uint64_t key);

  /// 0: plainly.
  std::uint64_t key_ = 0;
};

}  // namespace gradlink

// Whether plain or streaming stores are faster to memory that another core reads next.
//
// It is no property of the machine. If two cores share a last-level cache, plain stores are about
// twice as fast. If not, plain stores to lines that the other core read last wait for each line
// (2.3 GB/s against 28, EPYC Zen 4, November 2026). A hypervisor may move virtual cores from one
// case to the other at any time, so it is measured.
//
// The cost of measuring where one style is always right, as time of a fixed style relative to the
// adaptive one (all-reduce of two processes on two cores of one last-level cache, out of place and
// in place; November 2026):
//
//   bytes a rank   64 KiB      1 MiB       4 MiB       16 MiB      64 MiB
//   plain          0.96 0.97   1.01 1.00   0.98 1.02   1.23 0.99   1.00 0.92
//   streaming      1.55 1.56   1.97 1.57   1.17 1.40   0.98 1.08   1.09 1.08
#pragma once

#include <chrono>
#include <cstddef>

#include "core/kernels/measured_choice.h"

namespace gradlink {

class StoreStyle {
 public:
  /// Whether the next write should bypass the caches.
  bool streaming() const { return choice_.way() == 1; }
  bool measured() const { return choice_.measured(); }
  void advance() { choice_.advance(); }
  void record(bool streaming, float cost) { choice_.record(streaming, cost); }

  /// For callers that measure the write time alone: calls `write(streaming)` for `bytes` bytes.
  template <class Write>
  void write(std::size_t bytes, Write write) {
    using Clock = std::chrono::steady_clock;
    const bool streams = streaming();
    const bool timed = measured();
    const auto start = timed ? Clock::now() : Clock::time_point();
    write(streams);
    advance();
    if (!timed) return;
    const std::chrono::duration<float> took = Clock::now() - start;
    record(streams, took.count() / static_cast<float>(bytes));
  }

 private:
  MeasuredChoice choice_;
};

}  // namespace gradlink

// Which stores are faster into memory that another core reads next and that is then written again:
// plain ones, or such as bypass the caches.
//
// That is no property of the machine. Where two cores share a last-level cache plain stores win by
// about two; where they do not, plain stores to lines that the other core read last wait for each
// line (2.3 GB/s against 28, EPYC Zen 4, November 2026), and a hypervisor moves its virtual cores
// from the one case to the other while a program runs. So it is measured, again and again, at a
// bounded cost: what the other style loses is spread over as much work as makes it 2 % of it.
//
// What choosing costs where one style is right all the time, as time of a fixed style over the
// adaptive one (all-reduce of two processes on two cores of one last-level cache, out of place and
// in place; November 2026):
//
//   bytes a rank   64 KiB      1 MiB       4 MiB       16 MiB      64 MiB
//   plain          0.96 0.97   1.01 1.00   0.98 1.02   1.23 0.99   1.00 0.92
//   streaming      1.55 1.56   1.97 1.57   1.17 1.40   0.98 1.08   1.09 1.08
//
// So plain alone would do there, and would wait for lines where the cores share no cache.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gradlink {

class StoreStyle {
 public:
  /// Of the next writing: whether it should bypass the caches.
  bool streaming() const { return streaming_ != probing(); }
  /// The next writing, or its beginning, tries what is not known to be faster.
  bool probing() const { return probesLeft_ > 0; }
  /// The next writing's cost should be told to record().
  bool measured() const { return probing() || untilMeasured_ == 0; }

  /// For who goes by the time of writing alone: calls `write(streaming)` for `bytes` bytes.
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

  /// A writing is over. `share`: how much of it tried the other style if it did.
  void advance(float share = 1) {
    untilMeasured_ = untilMeasured_ == 0 ? kMeasuredEvery : untilMeasured_ - 1;
    if (probing()) {
      probeShare_ = share;
      --probesLeft_;
    } else if (untilProbe_ == 0) {
      probesLeft_ = kProbes;
      untilProbe_ = kFewestBetween;
    } else {
      --untilProbe_;
    }
  }

  /// What writing and reading took with one of the styles, per byte, in any unit.
  void record(bool streaming, float cost) {
    float& known = cost_[streaming];
    // Nothing is faster than it can be, but everything may be interrupted.
    known =
        known == 0 || cost < known ? cost : known + (std::min(cost, kMostRise * known) - known) / 4;
    if (cost_[!streaming] == 0) return;
    const bool tried = streaming != streaming_;
    if (cost_[!streaming_] * kWorthSwitching < cost_[streaming_]) {
      streaming_ = !streaming_;
      untilProbe_ = kFewestBetween;
    } else if (tried) {
      const float excess = std::max(cost_[!streaming_] / cost_[streaming_] - 1, 0.f);
      const float between = static_cast<float>(kProbes) * probeShare_ * excess / kProbingShare;
      untilProbe_ = static_cast<std::uint32_t>(
          std::clamp(between, float{kFewestBetween}, float{kMostBetween}));
    }
  }

 private:
  static constexpr std::uint32_t kMeasuredEvery = 7;
  static constexpr std::uint32_t kProbes = 2;
  static constexpr std::uint32_t kFewestBetween = 16;
  static constexpr std::uint32_t kMostBetween = 4096;
  static constexpr float kProbingShare = 0.02f;
  static constexpr float kMostRise = 3;
  static constexpr float kWorthSwitching = 1.05f;

  float cost_[2] = {0, 0};
  float probeShare_ = 1;
  std::uint32_t untilProbe_ = 1;
  std::uint32_t untilMeasured_ = 0;
  std::uint8_t probesLeft_ = 0;
  bool streaming_ = false;
};

}  // namespace gradlink

// Finds the fastest of a few equivalent ways while the work is done. Ways are measured again and
// again at a bounded cost: the loss is spread over enough work to stay at 2 %.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gradlink {

class MeasuredChoice {
 public:
  static constexpr int kMostWays = 4;

  explicit MeasuredChoice(int ways = 2) : ways_(static_cast<std::size_t>(ways)) {
    // Staggered, so the first calls try all ways.
    for (std::size_t w = 0; w < ways_; ++w) untilProbe_[w] = 1;
  }

  int way() const { return static_cast<int>(probing() ? tried_ : chosen_); }
  int chosen() const { return static_cast<int>(chosen_); }
  /// Whether the next work, or its beginning, tries another way than the fastest known.
  bool probing() const { return probesLeft_ > 0; }
  /// Whether the next work's cost should be passed to record().
  bool measured() const { return probing() || untilMeasured_ == 0; }

  /// Call after the work. `share`: how much of it tried another way, if it did.
  void advance(float share = 1) {
    untilMeasured_ = untilMeasured_ == 0 ? kMeasuredEvery : untilMeasured_ - 1;
    if (probing()) {
      probeShare_ = share;
      --probesLeft_;
      return;
    }
    for (std::size_t w = 0; w < ways_; ++w) {
      if (w == chosen_) continue;
      if (untilProbe_[w] > 0) {
        --untilProbe_[w];
      } else if (!probing()) {
        tried_ = w;
        probesLeft_ = kProbes;
        untilProbe_[w] = fewestBetween();
      }
    }
  }

  /// The cost of the work per byte, in any unit.
  void record(int way, float cost) {
    const auto at = static_cast<std::size_t>(way);
    float& known = cost_[at];
    // Interruptions only ever add to a cost.
    known =
        known == 0 || cost < known ? cost : known + (std::min(cost, kMostRise * known) - known) / 4;
    if (cost_[chosen_] == 0) return;
    std::size_t best = chosen_;
    for (std::size_t w = 0; w < ways_; ++w) {
      if (cost_[w] != 0 && cost_[w] < cost_[best]) best = w;
    }
    if (cost_[best] * kWorthSwitching < cost_[chosen_]) {
      chosen_ = best;
      untilProbe_.fill(fewestBetween());
    } else if (at != chosen_) {
      const float excess = std::max(cost_[at] / cost_[chosen_] - 1, 0.f);
      const float share = kProbingShare / static_cast<float>(ways_ - 1);
      const float between = static_cast<float>(kProbes) * probeShare_ * excess / share;
      untilProbe_[at] = static_cast<std::uint32_t>(
          std::clamp(between, static_cast<float>(fewestBetween()), float{kMostBetween}));
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

  /// Calls with the chosen way between two trials of another.
  std::uint32_t fewestBetween() const {
    return kFewestBetween * static_cast<std::uint32_t>(ways_ - 1);
  }

  std::size_t ways_;
  std::array<float, kMostWays> cost_{};
  std::array<std::uint32_t, kMostWays> untilProbe_{};
  float probeShare_ = 1;
  std::uint32_t untilMeasured_ = 0;
  std::size_t chosen_ = 0;
  std::size_t tried_ = 0;
  std::uint32_t probesLeft_ = 0;
};

}  // namespace gradlink

// Learning-rate schedules: pure functions of the number of updates, so servers, workers and the
// TypeScript classes (lib/optimizers/schedulers.ts, which call these) get the same float64 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradlink {

enum class SchedulerKind : std::uint8_t {
  factor = 0,
  multiFactor = 1,
  poly = 2,
  cosine = 3,
  table = 4
};
enum class WarmupMode : std::uint8_t { linear = 0, constant = 1 };

/// A schedule as numbers with MXNet 1.9.1's meaning and defaults; the kind decides which fields
/// count. A table holds the values of a user's function.
struct SchedulerSpec {
  SchedulerKind kind = SchedulerKind::factor;
  double baseLr = 0.01;
  /// Updates of warm-up, from warmupBeginLr towards warmupFinalLr (linear) or at warmupBeginLr
  /// (constant). Then the decay begins at baseLr, which an optimizer may have replaced.
  std::int64_t warmupSteps = 0;
  double warmupBeginLr = 0;
  double warmupFinalLr = 0.01;
  WarmupMode warmupMode = WarmupMode::linear;
  /// factor: one entry, the period. multiFactor: the updates after which the rate is multiplied.
  /// table: the updates from which a rate applies; baseLr before the first.
  std::vector<std::int64_t> steps;
  /// table only: one for each of steps.
  std::vector<double> rates;
  double factor = 1;
  /// factor only: the minimum rate.
  double stopFactorLr = 1e-8;
  /// poly and cosine: the update at which finalLr is reached.
  std::int64_t maxUpdate = 1;
  double finalLr = 0;
  /// poly only: the exponent.
  double power = 2;
};

/// Throws Error(invalidArgument).
void checkScheduler(const SchedulerSpec& spec);

/// The same for the part after the warm-up.
void checkDecay(const SchedulerSpec& spec);

/// The rate at `numUpdate` >= 0 updates (the largest of any key), for a spec with a valid decay.
double learningRateAt(const SchedulerSpec& spec, std::int64_t numUpdate);

}  // namespace gradlink

#include "kvstore/optimizer/lr_scheduler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

// Not the C library's pow and cos: their bits differ between libraries.

namespace gradlink {

namespace {

constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPi = 1.57079632679489661923;

// For x <= 0.
double exponential(double x) {
  // Half of the least positive float64 rounds to 0.
  if (x < -746) return 0;
  const double n = std::floor(x / (kLn2High + kLn2Low) + 0.5);
  const double r = x - n * kLn2High - n * kLn2Low;
  double sum = 1;
  for (int k = 16; k >= 1; --k) {
    sum = 1 + r * sum / k;
  }
  for (int i = static_cast<int>(n); i < 0; ++i) {
    sum *= 0.5;
  }
  return sum;
}

// For 0 < x <= 1.
double logarithm(double x) {
  double doublings = 0;
  while (x < 0.70710678118654752440) {
    x *= 2;
    doublings += 1;
  }
  const double s = (x - 1) / (x + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) {
    sum = 1.0 / k + square * sum;
  }
  const double series = 2 * s * sum;
  return series - doublings * kLn2Low - doublings * kLn2High;
}

// x^p for 0 <= x <= 1 and p > 0; whole powers up to 64 by multiplication, which may be exact.
double power(double x, double p) {
  if (x <= 0) {
    return 0;
  }
  if (p <= 64 && p == std::floor(p)) {
    double result = 1;
    for (int i = 0; i < static_cast<int>(p); ++i) {
      result *= x;
    }
    return result;
  }
  return exponential(p * logarithm(x));
}

// (1 + cos(pi x)) / 2 for 0 <= x <= 1, by the square of a sine up to pi / 4: exact at both ends.
double halfCosine(double x) {
  const double t = kHalfPi * (x <= 0.5 ? x : 1 - x);
  const double square = t * t;
  double sum = 1;
  for (int k = 21; k >= 3; k -= 2) {
    sum = 1 - square * sum / (k * (k - 1));
  }
  const double sine = t * sum;
  return x <= 0.5 ? 1 - sine * sine : sine * sine;
}

double factorAt(const SchedulerSpec& spec, std::int64_t numUpdate) {
  double rate = spec.baseLr;
  const std::int64_t drops = numUpdate > 0 ? (numUpdate - 1) / spec.steps[0] : 0;
  for (std::int64_t i = 0; i < drops; ++i) {
    double next = rate * spec.factor;
    if (next < spec.stopFactorLr) {
      next = spec.stopFactorLr;
    }
    if (next == rate) {
      break;
    }
    rate = next;
  }
  return rate;
}

double multiFactorAt(const SchedulerSpec& spec, std::int64_t numUpdate) {
  double rate = spec.baseLr;
  for (const std::int64_t step : spec.steps) {
    if (numUpdate <= step) {
      break;
    }
    rate *= spec.factor;
  }
  return rate;
}

double tableAt(const SchedulerSpec& spec, std::int64_t numUpdate) {
  const auto after = std::upper_bound(spec.steps.begin(), spec.steps.end(), numUpdate);
  return after == spec.steps.begin()
             ? spec.baseLr
             : spec.rates[static_cast<std::size_t>(after - spec.steps.begin()) - 1];
}

[[noreturn]] void rejectSchedule(const std::string& message) {
  throw Error(ErrorCode::invalidArgument, "learning-rate schedule: " + message);
}

void checkSteps(const SchedulerSpec& spec) {
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    if (spec.steps[i] < 1 || (i > 0 && spec.steps[i] <= spec.steps[i - 1])) {
      rejectSchedule("steps must be whole numbers from 1 on, each greater than the one before");
    }
  }
}

void checkFactor(const SchedulerSpec& spec) {
  if (spec.steps.empty() || (spec.kind == SchedulerKind::factor && spec.steps.size() != 1)) {
    rejectSchedule(spec.kind == SchedulerKind::factor ? "factor takes one step"
                                                      : "multi-factor takes at least one step");
  }
  checkSteps(spec);
  if (!(spec.factor > 0 && spec.factor <= 1)) {
    rejectSchedule("factor must be above 0 and at most 1, got " + std::to_string(spec.factor));
  }
  if (!std::isfinite(spec.stopFactorLr)) {
    rejectSchedule("stopFactorLr must be a finite number");
  }
}

void checkTable(const SchedulerSpec& spec) {
  if (spec.rates.size() != spec.steps.size()) {
    rejectSchedule("a table takes one rate for each of its " + std::to_string(spec.steps.size()) +
                   " updates, got " + std::to_string(spec.rates.size()));
  }
  checkSteps(spec);
  if (!std::all_of(spec.rates.begin(), spec.rates.end(),
                   [](double rate) { return std::isfinite(rate); })) {
    rejectSchedule("rates must be finite numbers");
  }
}

}  // namespace

void checkDecay(const SchedulerSpec& spec) {
  if (spec.kind == SchedulerKind::factor || spec.kind == SchedulerKind::multiFactor) {
    checkFactor(spec);
    return;
  }
  if (spec.kind == SchedulerKind::table) {
    checkTable(spec);
    return;
  }
  if (spec.maxUpdate < 1 || spec.maxUpdate <= spec.warmupSteps) {
    rejectSchedule("maxUpdate must be at least 1 and greater than warmupSteps");
  }
  if (spec.kind == SchedulerKind::poly && !(spec.power > 0 && std::isfinite(spec.power))) {
    rejectSchedule("power must be a finite number above 0");
  }
}

void checkScheduler(const SchedulerSpec& spec) {
  if (!std::isfinite(spec.baseLr) || !std::isfinite(spec.warmupBeginLr) ||
      !std::isfinite(spec.warmupFinalLr) || !std::isfinite(spec.finalLr)) {
    rejectSchedule("rates must be finite numbers");
  }
  if (spec.warmupSteps < 0) {
    rejectSchedule("warmupSteps must be 0 or more");
  }
  if (spec.warmupSteps > 0 && spec.warmupBeginLr > spec.warmupFinalLr) {
    rejectSchedule("warmupBeginLr (" + std::to_string(spec.warmupBeginLr) +
                   ") must not be above the base rate (" + std::to_string(spec.warmupFinalLr) +
                   ")");
  }
  checkDecay(spec);
}

double learningRateAt(const SchedulerSpec& spec, std::int64_t numUpdate) {
  if (numUpdate < spec.warmupSteps) {
    if (spec.warmupMode == WarmupMode::constant) {
      return spec.warmupBeginLr;
    }
    const double rise = (spec.warmupFinalLr - spec.warmupBeginLr) * static_cast<double>(numUpdate) /
                        static_cast<double>(spec.warmupSteps);
    return spec.warmupBeginLr + rise;
  }
  if (spec.kind == SchedulerKind::factor) {
    return factorAt(spec, numUpdate);
  }
  if (spec.kind == SchedulerKind::multiFactor) {
    return multiFactorAt(spec, numUpdate);
  }
  if (spec.kind == SchedulerKind::table) {
    return tableAt(spec, numUpdate);
  }
  const double steps = static_cast<double>(spec.maxUpdate - spec.warmupSteps);
  const double done =
      static_cast<double>(std::min(numUpdate, spec.maxUpdate) - spec.warmupSteps) / steps;
  const double share =
      spec.kind == SchedulerKind::poly ? power(1 - done, spec.power) : halfCosine(done);
  return spec.finalLr + (spec.baseLr - spec.finalLr) * share;
}

}  // namespace gradlink

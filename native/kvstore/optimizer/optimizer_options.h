// Names, defaults and ranges of every optimizer's options. lib/optimizers reads this table, too.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gradlink {

struct OptimizerSpec;

enum class OptionRange : std::uint8_t {
  finite,
  notNegative,
  /// Negative numbers count as 0, as MXNet's momenta.
  clampedAtZero,
  positive,
  /// Off by default and at 0, as in MXNet.
  positiveOrOff,
  /// At least 0 and below 1.
  unit,
  /// 0 or 1.
  flag,
  /// A whole number that a double holds exactly.
  count,
};
/// "finite", "notNegative" and so on.
const char* nameOf(OptionRange range);

struct OptimizerOption {
  const char* name;
  /// NaN: off.
  double fallback;
  OptionRange range;
};

struct OptimizerDefinition {
  const char* name;
  /// Its rate replaces a schedule's even if the caller gave none: MXNet's class passes its default
  /// on. Others use the schedule's.
  bool hasOwnRate;
  /// The common ones, then its own.
  std::vector<OptimizerOption> options;
};

std::span<const OptimizerDefinition> optimizerDefinitions();

/// All options of the spec's optimizer; NaN if one is off. Throws Error(invalidArgument) for an
/// unknown optimizer or option, or a number out of range.
std::map<std::string, double> optionsOf(const OptimizerSpec& spec);

}  // namespace gradlink

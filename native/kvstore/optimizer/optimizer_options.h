// The options of every optimizer: names, defaults and ranges. The one table of them; lib/optimizers
// reads it through the addon and adds types and documentation.
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
  /// Below 0 counts as 0, as MXNet has it of momenta.
  clampedAtZero,
  positive,
  /// Off by default, and at 0 as MXNet has it.
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
  /// Its rate replaces a schedule's even where the caller gave none: MXNet's class hands its
  /// default on. The others take the schedule's.
  bool hasOwnRate;
  /// Of every optimizer and then its own.
  std::vector<OptimizerOption> options;
};

/// Sorted by name.
std::span<const OptimizerDefinition> optimizerDefinitions();

/// All options of the optimizer that the spec names, by name; NaN where one is off. Throws
/// Error(invalidArgument) for an unknown optimizer or option, or a number out of its range.
std::map<std::string, double> optionsOf(const OptimizerSpec& spec);

}  // namespace gradlink

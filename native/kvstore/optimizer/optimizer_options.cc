#include "kvstore/optimizer/optimizer_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink {
namespace {

using Range = OptionRange;

constexpr double kOff = std::numeric_limits<double>::quiet_NaN();

struct Rate {
  double value;
  bool isOwn;
};
/// MXNet's base class: a schedule's base rate has precedence.
constexpr Rate kBaseRate = {0.01, false};
constexpr Rate ownRate(double value) { return {value, true}; }

/// An optimizer's own options follow the common ones.
OptimizerDefinition define(const char* name, Rate rate, const std::vector<OptimizerOption>& own) {
  OptimizerDefinition definition{name,
                                 rate.isOwn,
                                 {{"learningRate", rate.value, Range::finite},
                                  {"wd", 0, Range::finite},
                                  {"rescaleGrad", 1, Range::finite},
                                  {"clipGradient", kOff, Range::positiveOrOff},
                                  {"beginNumUpdate", 0, Range::count},
                                  {"multiPrecision", 0, Range::flag}}};
  definition.options.insert(definition.options.end(), own.begin(), own.end());
  return definition;
}

const char* expectationOf(Range range) {
  switch (range) {
    case Range::finite:
    case Range::clampedAtZero:
      return "a finite number";
    case Range::notNegative:
    case Range::positiveOrOff:
      return "a finite number of at least 0";
    case Range::positive:
      return "a finite number above 0";
    case Range::unit:
      return "a number of at least 0 and below 1";
    case Range::flag:
      return "true or false";
    case Range::count:
      return "a whole number of at least 0";
  }
  return "";
}

bool within(Range range, double value) {
  if (!std::isfinite(value)) return false;
  switch (range) {
    case Range::finite:
    case Range::clampedAtZero:
      return true;
    case Range::notNegative:
    case Range::positiveOrOff:
      return value >= 0;
    case Range::positive:
      return value > 0;
    case Range::unit:
      return value >= 0 && value < 1;
    case Range::flag:
      return value == 0 || value == 1;
    case Range::count:
      return value >= 0 && value <= 9007199254740991.0 && value == std::floor(value);
  }
  return false;
}

/// The meaning of a number in its range.
double meaningOf(Range range, double value) {
  if (range == Range::positiveOrOff && value == 0) return kOff;
  return range == Range::clampedAtZero ? std::max(value, 0.0) : value;
}

template <class Items, class NameOf>
std::string joined(const Items& items, NameOf nameOf) {
  std::string text;
  for (const auto& item : items) {
    text += (text.empty() ? "" : ", ") + std::string(nameOf(item));
  }
  return text;
}

const OptimizerDefinition& definitionOf(const std::string& name) {
  for (const OptimizerDefinition& definition : optimizerDefinitions()) {
    if (name == definition.name) return definition;
  }
  throw Error(ErrorCode::invalidArgument,
              "unknown optimizer '" + name + "': the known ones are " +
                  joined(optimizerDefinitions(), [](const auto& each) { return each.name; }));
}

}  // namespace

const char* nameOf(OptionRange range) {
  switch (range) {
    case Range::finite:
      return "finite";
    case Range::notNegative:
      return "notNegative";
    case Range::clampedAtZero:
      return "clampedAtZero";
    case Range::positive:
      return "positive";
    case Range::positiveOrOff:
      return "positiveOrOff";
    case Range::unit:
      return "unit";
    case Range::flag:
      return "flag";
    case Range::count:
      return "count";
  }
  return "";
}

// Defaults: MXNet 1.9.1, python/mxnet/optimizer; adamw's are of MXNet's later class.
std::span<const OptimizerDefinition> optimizerDefinitions() {
  static const std::vector<OptimizerDefinition> kDefinitions = {
      define("adadelta", kBaseRate,
             {{"rho", 0.9, Range::unit}, {"epsilon", 1e-5, Range::positive}}),
      define("adagrad", kBaseRate, {{"epsilon", 1e-7, Range::notNegative}}),
      define("adam", ownRate(0.001),
             {{"beta1", 0.9, Range::unit},
              {"beta2", 0.999, Range::unit},
              {"epsilon", 1e-8, Range::notNegative},
              {"lazyUpdate", 1, Range::flag}}),
      define("adamax", ownRate(0.002),
             {{"beta1", 0.9, Range::unit}, {"beta2", 0.999, Range::unit}}),
      define("adamw", ownRate(0.001),
             {{"beta1", 0.9, Range::unit},
              {"beta2", 0.999, Range::unit},
              {"epsilon", 1e-6, Range::notNegative},
              {"biasCorrection", 1, Range::flag}}),
      define("dcasgd", kBaseRate,
             {{"momentum", 0, Range::clampedAtZero}, {"lambda", 0.04, Range::finite}}),
      define("ftml", kBaseRate,
             {{"beta1", 0.6, Range::unit},
              {"beta2", 0.999, Range::unit},
              {"epsilon", 1e-8, Range::notNegative}}),
      define("ftrl", ownRate(0.1),
             {{"lambda1", 0.01, Range::notNegative}, {"beta", 1, Range::notNegative}}),
      define("groupadagrad", kBaseRate, {{"epsilon", 1e-5, Range::notNegative}}),
      define("lamb", ownRate(0.001),
             {{"beta1", 0.9, Range::unit},
              {"beta2", 0.999, Range::unit},
              {"epsilon", 1e-6, Range::notNegative},
              {"lowerBound", kOff, Range::positiveOrOff},
              {"upperBound", kOff, Range::positiveOrOff},
              {"biasCorrection", 1, Range::flag}}),
      define("lars", kBaseRate,
             {{"momentum", 0, Range::clampedAtZero},
              {"eta", 0.001, Range::positive},
              {"epsilon", 0, Range::notNegative},
              {"momentumCorrection", 1, Range::flag}}),
      define("lbsgd", kBaseRate,
             {{"momentum", 0, Range::clampedAtZero},
              {"warmupStrategy", 0, Range::count},
              {"warmupEpochs", 5, Range::notNegative},
              {"batchScale", 1, Range::count},
              {"updatesPerEpoch", 32, Range::count},
              {"beginEpoch", 0, Range::count}}),
      define("nadam", ownRate(0.001),
             {{"beta1", 0.9, Range::unit},
              {"beta2", 0.999, Range::unit},
              {"epsilon", 1e-8, Range::notNegative},
              {"scheduleDecay", 0.004, Range::finite}}),
      define("rmsprop", ownRate(0.001),
             {{"gamma1", 0.9, Range::unit},
              {"gamma2", 0.9, Range::unit},
              {"epsilon", 1e-8, Range::notNegative},
              {"centered", 0, Range::flag},
              {"clipWeights", kOff, Range::positiveOrOff}}),
      define("sgd", kBaseRate,
             {{"momentum", 0, Range::clampedAtZero},
              {"nesterov", 0, Range::flag},
              {"lazyUpdate", 1, Range::flag}}),
      define("sgld", kBaseRate, {{"seed", 0, Range::count}}),
      define("signum", ownRate(0.01),
             {{"momentum", 0.9, Range::clampedAtZero}, {"wdLh", 0, Range::finite}}),
      define("test", kBaseRate, {}),
  };
  return kDefinitions;
}

std::span<const char* const> optimizerNames() {
  static const std::vector<const char*> kNames = [] {
    std::vector<const char*> names;
    for (const OptimizerDefinition& definition : optimizerDefinitions()) {
      names.push_back(definition.name);
    }
    return names;
  }();
  return kNames;
}

std::map<std::string, double> optionsOf(const OptimizerSpec& spec) {
  std::map<std::string, double> values;
  for (const OptimizerOption& option : definitionOf(spec.name).options) {
    values[option.name] = option.fallback;
    const auto given = spec.numbers.find(option.name);
    if (given == spec.numbers.end()) continue;
    if (!within(option.range, given->second)) {
      throw Error(ErrorCode::invalidArgument, spec.name + ": " + option.name + " must be " +
                                                  expectationOf(option.range) + ", got " +
                                                  std::to_string(given->second));
    }
    values[option.name] = meaningOf(option.range, given->second);
  }
  for (const auto& [name, number] : spec.numbers) {
    if (values.contains(name)) continue;
    throw Error(ErrorCode::invalidArgument,
                spec.name + ": unknown option '" + name + "': the known ones are " +
                    joined(values, [](const auto& entry) { return entry.first; }));
  }
  return values;
}

}  // namespace gradlink

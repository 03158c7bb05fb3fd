#include "kvstore/optimizer/math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace gradlink {

namespace {

constexpr double kOff = std::numeric_limits<double>::quiet_NaN();
constexpr double kNoBound = std::numeric_limits<double>::infinity();

enum class Range : std::uint8_t { finite, notNegative, positive, unit, flag, count };

struct Option {
  const char* name;
  double fallback;
  Range range;
};

struct Definition {
  const char* name;
  double learningRate;
  std::vector<Option> options;
};

// Sorted by name. Defaults: MXNet 1.9.1, python/mxnet/optimizer; adamw, which 1.9.1 has only as an
// operator, as in MXNet's later class.
const std::vector<Definition>& definitions() {
  static const std::vector<Definition> kDefinitions = {
      {"adadelta", 0.01, {{"rho", 0.9, Range::unit}, {"epsilon", 1e-5, Range::positive}}},
      {"adagrad", 0.01, {{"epsilon", 1e-7, Range::notNegative}}},
      {"adam",
       0.001,
       {{"beta1", 0.9, Range::unit},
        {"beta2", 0.999, Range::unit},
        {"epsilon", 1e-8, Range::notNegative}}},
      {"adamw",
       0.001,
       {{"beta1", 0.9, Range::unit},
        {"beta2", 0.999, Range::unit},
        {"epsilon", 1e-6, Range::notNegative},
        {"biasCorrection", 1, Range::flag}}},
      {"ftrl", 0.1, {{"lambda1", 0.01, Range::notNegative}, {"beta", 1, Range::notNegative}}},
      {"lamb",
       0.001,
       {{"beta1", 0.9, Range::unit},
        {"beta2", 0.999, Range::unit},
        {"epsilon", 1e-6, Range::notNegative},
        {"lowerBound", kOff, Range::positive},
        {"upperBound", kOff, Range::positive},
        {"biasCorrection", 1, Range::flag}}},
      {"lars",
       0.01,
       {{"momentum", 0, Range::notNegative},
        {"eta", 0.001, Range::positive},
        {"epsilon", 0, Range::notNegative},
        {"momentumCorrection", 1, Range::flag}}},
      {"rmsprop",
       0.001,
       {{"gamma1", 0.9, Range::unit},
        {"gamma2", 0.9, Range::unit},
        {"epsilon", 1e-8, Range::notNegative},
        {"centered", 0, Range::flag},
        {"clipWeights", kOff, Range::positive}}},
      {"sgd", 0.01, {{"momentum", 0, Range::notNegative}, {"nesterov", 0, Range::flag}}},
      {"signum", 0.01, {{"momentum", 0.9, Range::notNegative}, {"wdLh", 0, Range::finite}}},
      {"test", 0.01, {}},
  };
  return kDefinitions;
}

std::vector<Option> commonOptions(double learningRate) {
  return {{"learningRate", learningRate, Range::finite},
          {"wd", 0, Range::finite},
          {"rescaleGrad", 1, Range::finite},
          {"clipGradient", kOff, Range::positive},
          {"beginNumUpdate", 0, Range::count},
          {"multiPrecision", 0, Range::flag}};
}

const char* expectationOf(Range range) {
  switch (range) {
    case Range::finite:
      return "a finite number";
    case Range::notNegative:
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
  if (!std::isfinite(value)) {
    return false;
  }
  switch (range) {
    case Range::finite:
      return true;
    case Range::notNegative:
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

template <class Items, class NameOf>
std::string joined(const Items& items, NameOf nameOf) {
  std::string text;
  for (const auto& item : items) {
    text += (text.empty() ? "" : ", ") + std::string(nameOf(item));
  }
  return text;
}

const Definition& definitionOf(const std::string& name) {
  for (const Definition& definition : definitions()) {
    if (name == definition.name) {
      return definition;
    }
  }
  throw Error(ErrorCode::invalidArgument,
              "unknown optimizer '" + name + "': the known ones are " +
                  joined(definitions(), [](const Definition& each) { return each.name; }));
}

void apply(const std::vector<Option>& options, const OptimizerSpec& spec,
           std::map<std::string, double>& values) {
  for (const Option& option : options) {
    values[option.name] = option.fallback;
    const auto given = spec.numbers.find(option.name);
    if (given == spec.numbers.end()) {
      continue;
    }
    if (!within(option.range, given->second)) {
      throw Error(ErrorCode::invalidArgument, spec.name + ": " + option.name + " must be " +
                                                  expectationOf(option.range) + ", got " +
                                                  std::to_string(given->second));
    }
    values[option.name] = given->second;
  }
}

double orNoBound(double value) { return std::isnan(value) ? kNoBound : value; }

}  // namespace

std::span<const char* const> optimizerNames() {
  static const std::vector<const char*> kNames = [] {
    std::vector<const char*> names;
    for (const Definition& definition : definitions()) {
      names.push_back(definition.name);
    }
    return names;
  }();
  return kNames;
}

OptimizerMath::OptimizerMath(const OptimizerSpec& spec) {
  const Definition& definition = definitionOf(spec.name);
  apply(commonOptions(definition.learningRate), spec, values);
  apply(definition.options, spec, values);
  for (const auto& [name, number] : spec.numbers) {
    if (values.find(name) == values.end()) {
      throw Error(ErrorCode::invalidArgument,
                  spec.name + ": unknown option '" + name + "': the known ones are " +
                      joined(values, [](const auto& entry) { return entry.first; }));
    }
  }

  const std::string& name = spec.name;
  if (name == "sgd" || name == "lars") {
    const bool withMomentum = value("momentum") != 0;
    const bool nesterov = name == "sgd" && flag("nesterov");
    kernel = !withMomentum ? StepKernel::sgd
             : nesterov    ? StepKernel::nesterov
                           : StepKernel::sgdMomentum;
    ratio = name == "lars" ? TrustRatio::lars : TrustRatio::none;
    if (withMomentum) {
      stateNames = {"momentum"};
    }
  } else if (name == "adam") {
    kernel = StepKernel::adam;
    stateNames = {"mean", "variance"};
  } else if (name == "adamw") {
    kernel = StepKernel::adamw;
    stateNames = {"mean", "variance"};
  } else if (name == "adagrad") {
    kernel = StepKernel::adagrad;
    stateNames = {"history"};
  } else if (name == "rmsprop") {
    kernel = flag("centered") ? StepKernel::rmspropCentered : StepKernel::rmsprop;
    stateNames = flag("centered") ? std::vector<const char*>{"square", "mean", "delta"}
                                  : std::vector<const char*>{"square"};
  } else if (name == "adadelta") {
    kernel = StepKernel::adadelta;
    stateNames = {"gradSquare", "deltaSquare"};
  } else if (name == "ftrl") {
    kernel = StepKernel::ftrl;
    stateNames = {"z", "n"};
  } else if (name == "signum") {
    kernel = value("momentum") != 0 ? StepKernel::signum : StepKernel::signSgd;
    if (kernel == StepKernel::signum) {
      stateNames = {"momentum"};
    }
  } else if (name == "lamb") {
    kernel = StepKernel::lambApply;
    ratio = TrustRatio::lamb;
    stateNames = {"mean", "variance"};
  } else {
    kernel = StepKernel::addScaled;
  }
  if (kernel == StepKernel::ftrl && value("learningRate") == 0 && !spec.scheduler) {
    throw Error(ErrorCode::invalidArgument, "ftrl: learningRate must not be 0, it divides by it");
  }
}

double OptimizerMath::value(const char* option) const {
  const auto found = values.find(option);
  return found == values.end() ? 0 : found->second;
}

StepScalars<double> OptimizerMath::scalars(const UpdateNumbers& numbers) const {
  StepScalars<double> c;
  c.lr = numbers.learningRate;
  c.wd = numbers.wd;
  c.rescale = numbers.rescaleGrad;
  c.clip = orNoBound(value("clipGradient"));
  c.epsilon = value("epsilon");
  c.momentum = value("momentum") * numbers.momentumScale;
  c.onePlusMomentum = 1 + c.momentum;
  c.oneMinusMomentum = 1 - c.momentum;
  c.clipWeights = kNoBound;

  const auto averages = [&c](double beta1, double beta2) {
    c.beta1 = beta1;
    c.oneMinusBeta1 = 1 - beta1;
    c.beta2 = beta2;
    c.oneMinusBeta2 = 1 - beta2;
  };
  const double t = static_cast<double>(numbers.t);
  switch (kernel) {
    case StepKernel::adam:
    case StepKernel::adamw:
      averages(value("beta1"), value("beta2"));
      if (kernel == StepKernel::adam || flag("biasCorrection")) {
        c.lr *= std::sqrt(1 - std::pow(c.beta2, t)) / (1 - std::pow(c.beta1, t));
      }
      break;
    case StepKernel::lambMoments:
    case StepKernel::lambApply:
      averages(value("beta1"), value("beta2"));
      if (flag("biasCorrection")) {
        c.correction1 = 1 - std::pow(c.beta1, t);
        c.correction2 = 1 - std::pow(c.beta2, t);
      }
      break;
    case StepKernel::rmsprop:
    case StepKernel::rmspropCentered:
      averages(value("gamma1"), value("gamma2"));
      c.clipWeights = orNoBound(value("clipWeights"));
      break;
    case StepKernel::adadelta:
      averages(value("rho"), 0);
      break;
    case StepKernel::ftrl:
      c.lambda1 = value("lambda1");
      c.ftrlBeta = value("beta");
      break;
    case StepKernel::sgd:
    case StepKernel::sgdMomentum:
    case StepKernel::nesterov:
    case StepKernel::adagrad:
    case StepKernel::signSgd:
    case StepKernel::signum:
    case StepKernel::addScaled:
      break;
  }
  c.lrWd = c.lr * c.wd;
  c.keep = 1 - c.lr * (kernel == StepKernel::signum ? value("wdLh") : c.wd);
  return c;
}

double OptimizerMath::trustRatio(const UpdateNumbers& numbers, double weightSquares,
                                 double otherSquares) const {
  double weightNorm = std::sqrt(weightSquares);
  if (ratio == TrustRatio::lars) {
    const double gradNorm = std::abs(numbers.rescaleGrad) * std::sqrt(otherSquares);
    return numbers.layerwise && weightNorm > 0 && gradNorm > 0
               ? value("eta") * weightNorm / (gradNorm + numbers.wd * weightNorm + value("epsilon"))
               : 1;
  }
  const double lower = value("lowerBound");
  const double upper = value("upperBound");
  if (!std::isnan(lower)) {
    weightNorm = std::max(weightNorm, lower);
  }
  if (!std::isnan(upper)) {
    weightNorm = std::min(weightNorm, upper);
  }
  const double directionNorm = std::sqrt(otherSquares);
  return weightNorm == 0 || directionNorm == 0 ? 1 : weightNorm / directionNorm;
}

}  // namespace gradlink

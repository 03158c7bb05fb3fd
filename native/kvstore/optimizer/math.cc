#include "kvstore/optimizer/math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/kernels/step_formulas.h"
#include "kvstore/optimizer/optimizer_options.h"

namespace gradlink {

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// lbsgd: the rate follows norms instead of a warm-up.
constexpr double kLarsStrategy = 3;

double orNoBound(double value) { return std::isnan(value) ? kNoBound : value; }

/// nadam's momentum at a step, which rises to beta1.
double nadamMomentum(double beta1, double decay, double t) {
  return beta1 * (1 - 0.5 * std::pow(0.96, t * decay));
}

/// The product of nadam's momenta after step `before` up to t, or until it is negligible.
double nadamProduct(double beta1, double decay, double before, double t) {
  constexpr double kTooSmall = 1e-20;
  double product = 1;
  for (double step = before + 1; step <= t && product > kTooSmall; ++step) {
    product *= nadamMomentum(beta1, decay, step);
  }
  return product;
}

}  // namespace

OptimizerMath::OptimizerMath(const OptimizerSpec& spec) : values(optionsOf(spec)) {
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
  } else if (name == "groupadagrad") {
    kernel = StepKernel::groupAdagrad;
    stateNames = {"history"};
    if (value("wd") != 0) {
      throw Error(ErrorCode::invalidArgument,
                  "groupadagrad: wd must be 0, it has no weight decay; use adagrad with wd");
    }
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
  } else if (name == "adamax") {
    kernel = StepKernel::adamax;
    stateNames = {"mean", "bound"};
  } else if (name == "nadam") {
    kernel = StepKernel::nadam;
    stateNames = {"mean", "variance"};
  } else if (name == "ftml") {
    kernel = StepKernel::ftml;
    stateNames = {"d", "v", "z"};
  } else if (name == "dcasgd") {
    kernel = StepKernel::dcasgd;
    stateNames = {"before", "momentum"};
  } else if (name == "lbsgd") {
    kernel = StepKernel::lbsgd;
    stateNames = {"momentum", "gathered"};
    if (value("warmupStrategy") > kLarsStrategy || value("batchScale") == 0) {
      throw Error(ErrorCode::invalidArgument,
                  "lbsgd: batchScale must be at least 1, and warmupStrategy a number from 0 to 3");
    }
    if (value("warmupStrategy") == kLarsStrategy) ratio = TrustRatio::lbsgd;
  } else if (name == "sgld") {
    kernel = StepKernel::sgld;
    if (value("learningRate") < 0) {
      throw Error(ErrorCode::invalidArgument,
                  "sgld: learningRate must be at least 0, its root is the noise's deviation");
    }
  } else {
    kernel = StepKernel::addScaled;
  }
  lazy = flag("lazyUpdate") || name == "adagrad" || name == "ftrl" || isByRow();
  const bool dividesByRate = kernel == StepKernel::ftrl || kernel == StepKernel::ftml;
  if (dividesByRate && value("learningRate") == 0 && !spec.scheduler) {
    throw Error(ErrorCode::invalidArgument,
                name + ": learningRate must not be 0, it divides by it");
  }
}

/// The pushes of a key that lbsgd has gathered or stepped by.
double OptimizerMath::gatheredPushes(const UpdateNumbers& numbers) const {
  return value("beginEpoch") * value("updatesPerEpoch") + static_cast<double>(numbers.t) -
         value("beginNumUpdate");
}

/// lbsgd's factor of the rate: rises to batchScale.
double OptimizerMath::warmup(double pushes) const {
  constexpr double kPower2 = 1;
  constexpr double kRoot = 2;
  const double most = value("batchScale");
  const double end = value("warmupEpochs") * value("updatesPerEpoch");
  if (pushes >= end) return most;
  if (end <= 1) return 1;
  const double strategy = value("warmupStrategy");
  double part = pushes / end;
  if (strategy == kPower2) part *= part;
  if (strategy == kRoot) part = std::sqrt(part);
  return 1 + (most - 1) * part;
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
    case StepKernel::adamax:
      averages(value("beta1"), value("beta2"));
      c.lr /= 1 - std::pow(c.beta1, t);
      break;
    case StepKernel::nadam: {
      averages(value("beta1"), value("beta2"));
      c.correction2 = 1 - std::pow(c.beta2, t);
      const double decay = value("scheduleDecay");
      const double now = nadamMomentum(c.beta1, decay, t);
      const double next = nadamMomentum(c.beta1, decay, t + 1);
      const double product = nadamProduct(c.beta1, decay, value("beginNumUpdate"), t);
      c.momentum = (1 - now) / (1 - product);
      c.onePlusMomentum = next / (1 - product * next);
      break;
    }
    case StepKernel::ftml:
      averages(value("beta1"), value("beta2"));
      c.correction1 = 1 - std::pow(c.beta1, t);
      c.correction2 = 1 - std::pow(c.beta2, t);
      break;
    case StepKernel::dcasgd:
      c.lambda1 = value("lambda");
      break;
    case StepKernel::lbsgd: {
      const double pushes = gatheredPushes(numbers);
      c.correction1 = std::fmod(pushes, value("batchScale")) == 0 ? 1 : 0;
      c.correction2 = value("batchScale");
      if (ratio == TrustRatio::none) c.lr *= warmup(pushes);
      break;
    }
    case StepKernel::sgld:
      c.correction1 = std::sqrt(std::max(c.lr, 0.0));
      c.lr /= 2;
      break;
    case StepKernel::sgd:
    case StepKernel::sgdMomentum:
    case StepKernel::nesterov:
    case StepKernel::adagrad:
    case StepKernel::groupAdagrad:
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
  if (ratio == TrustRatio::lbsgd) {
    return kernels::lbsgdRatio(numbers.wd, weightSquares, otherSquares);
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

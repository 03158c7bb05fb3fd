// What distinguishes one optimizer from another: its options, its state arrays, its kernels and the
// numbers of a step. Everything else (optimizer.cc, update_run.cc) is the same for all.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "kvstore/optimizer/optimizer.h"
#include "kvstore/optimizer/simd/kernels.h"

namespace gradlink {

struct OptimizerMath {
  /// Resolves and checks the options; throws Error(invalidArgument).
  explicit OptimizerMath(const OptimizerSpec& spec);

  /// The numbers of a step. For lars and lamb learningRate already carries the trust ratio in the
  /// second phase.
  StepScalars<double> scalars(const UpdateNumbers& numbers) const;
  /// The factor on the rate from the sums of squares of the weights and of the gradient (lars) or
  /// direction (lamb).
  double trustRatio(const UpdateNumbers& numbers, double weightSquares, double otherSquares) const;

  /// Whether a step keeps one number for a row and needs the whole row's gradient.
  bool isByRow() const { return kernel == StepKernel::groupAdagrad; }
  /// Whether the last phase needs what the first found in other blocks.
  bool needsWhole() const { return ratio != TrustRatio::none || isByRow(); }

  /// Whether the rate is that before the update was counted.
  bool asksRateFirst() const { return kernel == StepKernel::lbsgd; }

  double value(const char* option) const;
  bool flag(const char* option) const { return value(option) != 0; }

  /// All options of this optimizer, defaults filled in; NaN where an option is off (clipGradient).
  std::map<std::string, double> values;
  StepKernel kernel;
  TrustRatio ratio = TrustRatio::none;
  /// Which of them are, and where it is an option, as in MXNet 1.9.1.
  bool lazy = false;
  std::vector<const char*> stateNames;

 private:
  double gatheredPushes(const UpdateNumbers& numbers) const;
  double warmup(double pushes) const;
};

}  // namespace gradlink

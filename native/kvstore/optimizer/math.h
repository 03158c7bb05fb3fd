// The differences between optimizers: options, state arrays, kernels and the numbers of a step.
// Everything else (optimizer.cc, update_run.cc) is shared.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "kvstore/optimizer/optimizer.h"
#include "kvstore/optimizer/simd/kernels.h"

namespace gradlink {

struct OptimizerMath {
  /// Throws Error(invalidArgument) for bad options.
  explicit OptimizerMath(const OptimizerSpec& spec);

  /// The numbers of a step; in lars' and lamb's second phase learningRate includes the trust ratio.
  StepScalars<double> scalars(const UpdateNumbers& numbers) const;
  /// The rate's factor, from sums of squares of weights and gradient (lars) or direction (lamb).
  double trustRatio(const UpdateNumbers& numbers, double weightSquares, double otherSquares) const;

  /// Whether a step needs the whole row's gradient for a number of the row.
  bool isByRow() const { return kernel == StepKernel::groupAdagrad; }
  /// Whether the last phase needs the first phase's results of other blocks.
  bool needsWhole() const { return ratio != TrustRatio::none || isByRow(); }

  /// Whether the rate is that before the update was counted.
  bool asksRateFirst() const { return kernel == StepKernel::lbsgd; }

  double value(const char* option) const;
  bool flag(const char* option) const { return value(option) != 0; }

  /// All options, with defaults; NaN if an option is off (clipGradient).
  std::map<std::string, double> values;
  StepKernel kernel;
  TrustRatio ratio = TrustRatio::none;
  /// Whether it updates touched rows only; an option in some, as in MXNet 1.9.1.
  bool lazy = false;
  std::vector<const char*> stateNames;

 private:
  double gatheredPushes(const UpdateNumbers& numbers) const;
  double warmup(double pushes) const;
};

}  // namespace gradlink

// Types that describe an optimizer's step, for the host's loops (kvstore) and GPU kernels (cuda).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink {

// Every formula of step_formulas.h: X(argument, kernel, Formula) with its StepKernel and struct.
// The enumeration, the loops of every SIMD level and the GPU kernels follow this list.
#define GRADLINK_STEP_FORMULAS(X, argument)     \
  X(argument, sgd, Sgd)                         \
  X(argument, sgdMomentum, SgdMomentum)         \
  X(argument, nesterov, Nesterov)               \
  X(argument, adam, Adam)                       \
  X(argument, adamw, Adamw)                     \
  X(argument, adagrad, Adagrad)                 \
  X(argument, rmsprop, Rmsprop)                 \
  X(argument, rmspropCentered, RmspropCentered) \
  X(argument, adadelta, Adadelta)               \
  X(argument, ftrl, Ftrl)                       \
  X(argument, signSgd, SignSgd)                 \
  X(argument, signum, Signum)                   \
  X(argument, lambApply, LambApply)             \
  X(argument, addScaled, AddScaled)             \
  X(argument, adamax, Adamax)                   \
  X(argument, nadam, Nadam)                     \
  X(argument, ftml, Ftml)                       \
  X(argument, dcasgd, Dcasgd)                   \
  X(argument, lbsgd, Lbsgd)

// The formulas of host_formulas.h; X as above.
#define GRADLINK_HOST_FORMULAS(X, argument) X(argument, sgld, Sgld)

enum class StepKernel : std::uint8_t {
#define GRADLINK_STEP_NAME(none, kernel, Formula) kernel,
  GRADLINK_STEP_FORMULAS(GRADLINK_STEP_NAME, ) GRADLINK_HOST_FORMULAS(GRADLINK_STEP_NAME, )
#undef GRADLINK_STEP_NAME
  /// The first half of lamb: moments, and the direction for its norm.
  lambMoments,
  /// Row by row (kvstore/optimizer/group_adagrad.h), so not in the tables of loops over elements.
  groupAdagrad,
};
/// Those in the tables of loops over elements.
inline constexpr std::size_t kStepKernelCount =
    static_cast<std::size_t>(StepKernel::lambMoments) + 1;

constexpr bool runsOnGpus(StepKernel kernel) {
  return kernel < StepKernel::sgld || kernel == StepKernel::lambMoments;
}

enum class TrustRatio : std::uint8_t { none, lars, lamb, lbsgd };

/// Elements of a block: updates are cut and norms are summed by blocks. A block of every array of
/// an optimizer stays in the first two cache levels.
inline constexpr std::size_t kUpdateBlock = 4096;

/// The numbers of one step in the precision of the loop. Each kernel uses some of them.
template <class T>
struct StepScalars {
  T lr = 0;
  T wd = 0;
  T lrWd = 0;
  /// 1 - lr * wd, or 1 - lr * wdLh for signum.
  T keep = 1;
  T rescale = 1;
  /// Bound of the gradient; infinity: no clipping.
  T clip = 0;
  T momentum = 0;
  T onePlusMomentum = 1;
  T oneMinusMomentum = 1;
  /// Decay of the first average: beta1, rho, gamma1.
  T beta1 = 0;
  T oneMinusBeta1 = 1;
  T beta2 = 0;
  T oneMinusBeta2 = 1;
  T epsilon = 0;
  /// lamb: bias corrections 1 - beta^t, or 1. Other kernels store other numbers here.
  T correction1 = 1;
  T correction2 = 1;
  /// ftrl: L1 strength and beta.
  T lambda1 = 0;
  T ftrlBeta = 0;
  /// rmsprop: bound of the weights; infinity: no clipping.
  T clipWeights = 0;
};

template <class T>
StepScalars<T> rounded(const StepScalars<double>& from) {
  StepScalars<T> to;
  to.lr = static_cast<T>(from.lr);
  to.wd = static_cast<T>(from.wd);
  to.lrWd = static_cast<T>(from.lrWd);
  to.keep = static_cast<T>(from.keep);
  to.rescale = static_cast<T>(from.rescale);
  to.clip = static_cast<T>(from.clip);
  to.momentum = static_cast<T>(from.momentum);
  to.onePlusMomentum = static_cast<T>(from.onePlusMomentum);
  to.oneMinusMomentum = static_cast<T>(from.oneMinusMomentum);
  to.beta1 = static_cast<T>(from.beta1);
  to.oneMinusBeta1 = static_cast<T>(from.oneMinusBeta1);
  to.beta2 = static_cast<T>(from.beta2);
  to.oneMinusBeta2 = static_cast<T>(from.oneMinusBeta2);
  to.epsilon = static_cast<T>(from.epsilon);
  to.correction1 = static_cast<T>(from.correction1);
  to.correction2 = static_cast<T>(from.correction2);
  to.lambda1 = static_cast<T>(from.lambda1);
  to.ftrlBeta = static_cast<T>(from.ftrlBeta);
  to.clipWeights = static_cast<T>(from.clipWeights);
  return to;
}

}  // namespace gradlink

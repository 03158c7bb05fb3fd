// Formulas that only the host's loops have; GPUs have no kernels of them. As in step_formulas.h:
// MXNet 1.9.1's, for one element, the same bits on every machine.
#pragma once

#include "core/kernels/step_formulas.h"

#define GRADLINK_FORMULA __attribute__((always_inline)) inline

namespace gradlink::kernels {

/// g = clip(rescale gradient + wd w); m as adam's; u = max(beta2 u, |g|); w -= lr m / u, nothing
/// where u is 0 (MXNet divides by it). lr carries the bias correction.
struct Adamax {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    s[0] = c.beta1 * s[0] + c.oneMinusBeta1 * g;
    const T kept = c.beta2 * s[1];
    const T size = g < T(0) ? -g : g;
    s[1] = kept > size ? kept : size;
    w = s[1] == T(0) ? w : w - c.lr * s[0] / s[1];
  }
};

/// Moments as adam's of g = clip(rescale gradient + wd w); w -= lr (a g + b m) / (sqrt(v / c2) +
/// eps), where a (momentum) and b (onePlusMomentum) follow from the schedule of the momentum.
struct Nadam {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    moments(g, s, c);
    const T direction = c.momentum * g + c.onePlusMomentum * s[0];
    w = w - c.lr * direction / (root(s[1] / c.correction2) + c.epsilon);
  }
};

/// g = clip(rescale gradient + wd w); v as adam's; d' = c1 / lr (sqrt(v / c2) + eps);
/// z = beta1 z + (1 - beta1) g - (d' - beta1 d) w; w = -z / d'
struct Ftml {
  static constexpr unsigned kStates = 3;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    const T v = c.beta2 * s[1] + c.oneMinusBeta2 * g * g;
    const T d = c.correction1 / c.lr * (root(v / c.correction2) + c.epsilon);
    const T z = c.beta1 * s[2] + c.oneMinusBeta1 * g - (d - c.beta1 * s[0]) * w;
    s[0] = d;
    s[1] = v;
    s[2] = z;
    w = -z / d;
  }
};

/// m = mu m - lr (g + wd w + lambda g^2 (w - before)); before = w; w += m
struct Dcasgd {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[1] = c.momentum * s[1] - c.lr * (g + c.wd * w + c.lambda1 * g * g * (w - s[0]));
    s[0] = w;
    w = w + s[1];
  }
};

/// Gathers gradients in s[1]; in a step that is due (correction1 is not 0) it takes sgd's with
/// momentum, of the mean over batchScale of them (correction2).
struct Lbsgd {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T gathered = s[1] + grad;
    const T g = bounded(c.rescale * (gathered / c.correction2), c.clip);
    const T m = c.momentum * s[0] - c.lrWd * w - c.lr * g;
    const bool isDue = c.correction1 != T(0);
    s[0] = isDue ? m : s[0];
    s[1] = isDue ? T(0) : gathered;
    w = isDue ? w + m : w;
  }
};

/// w -= lr (g + wd w); w += sigma s, where lr is half the rate, s the element's noise and sigma
/// (correction1) the root of the rate.
struct Sgld {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    w = w - c.lr * (g + c.wd * w);
    w = w + c.correction1 * s[0];
  }
};

#undef GRADLINK_FORMULA

}  // namespace gradlink::kernels

// Formulas without GPU kernels, MXNet 1.9.1's as in step_formulas.h, with the same bits everywhere.
#pragma once

#include "core/kernels/step_formulas.h"

#define GRADLINK_FORMULA __attribute__((always_inline)) inline

namespace gradlink::kernels {

/// w -= lr (g + wd w); w += sigma s. lr is half the rate, s the element's noise, sigma
/// (correction1) the square root of the rate.
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

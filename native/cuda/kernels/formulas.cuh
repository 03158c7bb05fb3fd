// The optimizers' formulas for one element, operation by operation those of
// kvstore/simd/step_loops.inc: T is float or double, s are the element's states, g its gradient.
#pragma once

#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

template <class T>
GRADLINK_DEVICE T bounded(T x, T bound) {
  x = x > bound ? bound : x;
  return x < -bound ? -bound : x;
}

struct Sgd {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T*, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    w = c.keep * w - c.lr * g;
  }
};

struct SgdMomentum {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = c.momentum * s[0] - c.lrWd * w - c.lr * g;
    w = w + s[0];
  }
};

struct Nesterov {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    const T decayed = c.momentum * s[0];
    const T next = decayed - c.lr * (g + c.wd * w);
    w = w - decayed + c.onePlusMomentum * next;
    s[0] = next;
  }
};

/// The moments of adam, adamw and lamb.
template <class T>
GRADLINK_DEVICE void moments(T g, T* s, const StepScalars<T>& c) {
  s[0] = c.beta1 * s[0] + c.oneMinusBeta1 * g;
  s[1] = c.beta2 * s[1] + c.oneMinusBeta2 * g * g;
}

struct Adam {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    moments(bounded(c.rescale * grad + c.wd * w, c.clip), s, c);
    w = w - c.lr * s[0] / (root(s[1]) + c.epsilon);
  }
};

struct Adamw {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    moments(bounded(c.rescale * grad, c.clip), s, c);
    w = w - c.lr * (s[0] / (root(s[1]) + c.epsilon) + c.wd * w);
  }
};

struct Adagrad {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = s[0] + g * g;
    w = w - c.lr * (g / root(s[0] + c.epsilon) + c.wd * w);
  }
};

struct Rmsprop {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    s[0] = c.oneMinusBeta1 * (g * g) + c.beta1 * s[0];
    w = bounded(w - c.lr * (g / root(s[0] + c.epsilon)), c.clipWeights);
  }
};

struct RmspropCentered {
  static constexpr unsigned kStates = 3;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    const T n = c.oneMinusBeta1 * g * g + c.beta1 * s[0];
    const T m = c.oneMinusBeta1 * g + c.beta1 * s[1];
    const T d = c.beta2 * s[2] - c.lr * g / root(n - m * m + c.epsilon);
    s[0] = n;
    s[1] = m;
    s[2] = d;
    w = bounded(w + d, c.clipWeights);
  }
};

struct Adadelta {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    const T n = c.beta1 * s[0] + c.oneMinusBeta1 * g * g;
    const T d = root(s[1] + c.epsilon) / root(n + c.epsilon) * g;
    s[0] = n;
    s[1] = c.beta1 * s[1] + c.oneMinusBeta1 * d * d;
    w = w - (d + c.wd * w);
  }
};

struct Ftrl {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    const T n = s[1] + g * g;
    const T rootN = root(n);
    const T z = s[0] + (g - (rootN - root(s[1])) * w / c.lr);
    s[0] = z;
    s[1] = n;
    const T edge = z > T(0) ? c.lambda1 : -c.lambda1;
    const T next = (edge - z) / ((c.ftrlBeta + rootN) / c.lr + c.wd);
    const T size = z > T(0) ? z : -z;
    // Written so that a NaN stays one.
    w = size <= c.lambda1 ? T(0) : next;
  }
};

struct SignSgd {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T*, const StepScalars<T>& c) {
    const T g = c.rescale * grad;
    const T up = g > T(0) ? c.lr : T(0);
    const T down = g < T(0) ? c.lr : T(0);
    w = c.keep * w - (up - down);
  }
};

struct Signum {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = c.momentum * s[0] - c.oneMinusMomentum * c.wd * w - c.oneMinusMomentum * g;
    const T up = s[0] > T(0) ? c.lr : T(0);
    const T down = s[0] < T(0) ? c.lr : T(0);
    w = c.keep * w + (up - down);
  }
};

template <class T>
GRADLINK_DEVICE T lambDirection(T w, const T* s, const StepScalars<T>& c) {
  return (s[0] / c.correction1) / (root(s[1] / c.correction2) + c.epsilon) + c.wd * w;
}

/// The second half of lamb's step; norms.cuh has the first. lr carries the trust ratio.
struct LambApply {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T, T* s, const StepScalars<T>& c) {
    w = w - c.lr * lambDirection(w, s, c);
  }
};

template <class Formula>
inline constexpr bool kHasMoments = false;
template <>
inline constexpr bool kHasMoments<LambApply> = true;

struct AddScaled {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_DEVICE void step(T& w, T grad, T*, const StepScalars<T>& c) {
    w = w + c.rescale * grad;
  }
};

}  // namespace gradlink::kernels

// The optimizers' formulas for one element, shared by the host's loops and GPU kernels. T is float
// or double, s the element's states, g its gradient. No fused multiply-add and no approximate root:
// every machine gives the same bits.
//
// From MXNet 1.9.1's optimizer operators (adamw: contrib), with g = clip(rescale * gradient) unless
// stated otherwise.
#pragma once

#include "core/kernels/formula.h"
#include "core/kernels/optimizer_step.h"

namespace gradlink::kernels {

#if defined(__CUDACC__)
GRADLINK_FORMULA float root(float x) { return __fsqrt_rn(x); }
GRADLINK_FORMULA double root(double x) { return __dsqrt_rn(x); }
#else
GRADLINK_FORMULA float root(float x) { return __builtin_sqrtf(x); }
GRADLINK_FORMULA double root(double x) { return __builtin_sqrt(x); }
#endif

template <class T>
GRADLINK_FORMULA T bounded(T x, T bound) {
  x = x > bound ? bound : x;
  return x < -bound ? -bound : x;
}

/// w = (1 - lr wd) w - lr g
struct Sgd {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T*, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    w = c.keep * w - c.lr * g;
  }
};

/// m = mu m - lr wd w - lr g; w += m
struct SgdMomentum {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = c.momentum * s[0] - c.lrWd * w - c.lr * g;
    w = w + s[0];
  }
};

/// d = lr (g + wd w); m' = mu m - d; w += (1 + mu) m' - mu m
struct Nesterov {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    const T decayed = c.momentum * s[0];
    const T next = decayed - c.lr * (g + c.wd * w);
    w = w - decayed + c.onePlusMomentum * next;
    s[0] = next;
  }
};

/// The moments of adam, adamw and lamb.
template <class T>
GRADLINK_FORMULA void moments(T g, T* s, const StepScalars<T>& c) {
  s[0] = c.beta1 * s[0] + c.oneMinusBeta1 * g;
  s[1] = c.beta2 * s[1] + c.oneMinusBeta2 * g * g;
}

/// g = clip(rescale gradient + wd w); lr carries the bias correction
struct Adam {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    moments(bounded(c.rescale * grad + c.wd * w, c.clip), s, c);
    w = w - c.lr * s[0] / (root(s[1]) + c.epsilon);
  }
};

/// w -= lr (m / (sqrt(v) + eps) + wd w); lr carries the bias correction
struct Adamw {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    moments(bounded(c.rescale * grad, c.clip), s, c);
    w = w - c.lr * (s[0] / (root(s[1]) + c.epsilon) + c.wd * w);
  }
};

/// h += g^2; w -= lr (g / sqrt(h + eps) + wd w)
struct Adagrad {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = s[0] + g * g;
    w = w - c.lr * (g / root(s[0] + c.epsilon) + c.wd * w);
  }
};

/// g = clip(rescale gradient + wd w); n = (1 - gamma1) g^2 + gamma1 n; w -= lr g / sqrt(n + eps)
struct Rmsprop {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad + c.wd * w, c.clip);
    s[0] = c.oneMinusBeta1 * (g * g) + c.beta1 * s[0];
    w = bounded(w - c.lr * (g / root(s[0] + c.epsilon)), c.clipWeights);
  }
};

/// Graves' version: d = gamma2 d - lr g / sqrt(n - mean^2 + eps); w += d
struct RmspropCentered {
  static constexpr unsigned kStates = 3;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
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

/// d = sqrt(D + eps) / sqrt(G + eps) g; w -= d + wd w. There is no learning rate.
struct Adadelta {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    const T n = c.beta1 * s[0] + c.oneMinusBeta1 * g * g;
    const T d = root(s[1] + c.epsilon) / root(n + c.epsilon) * g;
    s[0] = n;
    s[1] = c.beta1 * s[1] + c.oneMinusBeta1 * d * d;
    w = w - (d + c.wd * w);
  }
};

/// z += g - (sqrt(n + g^2) - sqrt(n)) w / lr; n += g^2;
/// w = (sign(z) l1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > l1, else 0
struct Ftrl {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
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

/// w = (1 - lr wd) w - lr sign(gradient)
struct SignSgd {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T*, const StepScalars<T>& c) {
    const T g = c.rescale * grad;
    const T up = g > T(0) ? c.lr : T(0);
    const T down = g < T(0) ? c.lr : T(0);
    w = c.keep * w - (up - down);
  }
};

/// m = mu m - (1 - mu) wd w - (1 - mu) g; w = (1 - lr wdLh) w + lr sign(m)
struct Signum {
  static constexpr unsigned kStates = 1;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T* s, const StepScalars<T>& c) {
    const T g = bounded(c.rescale * grad, c.clip);
    s[0] = c.momentum * s[0] - c.oneMinusMomentum * c.wd * w - c.oneMinusMomentum * g;
    const T up = s[0] > T(0) ? c.lr : T(0);
    const T down = s[0] < T(0) ? c.lr : T(0);
    w = c.keep * w + (up - down);
  }
};

template <class T>
GRADLINK_FORMULA T lambDirection(T w, const T* s, const StepScalars<T>& c) {
  return (s[0] / c.correction1) / (root(s[1] / c.correction2) + c.epsilon) + c.wd * w;
}

/// The second half of lamb; norms.cuh has the first. lr carries the trust ratio.
struct LambApply {
  static constexpr unsigned kStates = 2;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T, T* s, const StepScalars<T>& c) {
    w = w - c.lr * lambDirection(w, s, c);
  }
};

template <class Formula>
inline constexpr bool kHasMoments = false;
template <>
inline constexpr bool kHasMoments<LambApply> = true;

/// w += rescale gradient
struct AddScaled {
  static constexpr unsigned kStates = 0;
  template <class T>
  static GRADLINK_FORMULA void step(T& w, T grad, T*, const StepScalars<T>& c) {
    w = w + c.rescale * grad;
  }
};

/// g = clip(rescale gradient + wd w); m as adam's; u = max(beta2 u, |g|); w -= lr m / u, or 0 where
/// u is 0 (MXNet divides by it). lr carries the bias correction.
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
/// eps). a (momentum) and b (onePlusMomentum) follow the momentum schedule.
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

/// The factor of lbsgd's rate from the norms of the weights and of the step's mean.
GRADLINK_FORMULA double lbsgdRatio(double wd, double weightSquares, double meanSquares) {
  constexpr double kAgainstZero = 1e-18;
  const double ratio = root(weightSquares / (meanSquares + wd * weightSquares + kAgainstZero));
  return ratio < 0.01 ? 0.01 : (ratio > 100.0 ? 100.0 : ratio);
}

/// Accumulates gradients in s[1]. A step that is due (correction1 is not 0) is sgd's with momentum
/// on the mean of batchScale (correction2) of them.
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

#undef GRADLINK_FORMULA

}  // namespace gradlink::kernels

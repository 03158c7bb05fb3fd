// The optimizers' loops. Included by one file a SIMD level; everything is in an unnamed namespace,
// so that no function compiled for a wider level can be linked into another. Formulas:
// MXNet 1.9.1's optimizer operators (adamw: MXNet's contrib operator), with g = clip(rescale *
// gradient) where nothing else is said.
#pragma once

#include <cstddef>

#include "kvstore/simd/kernels.h"

namespace gradlink {
namespace {

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

template <class T>
inline T bounded(T x, T bound) {
  x = x > bound ? bound : x;
  return x < -bound ? -bound : x;
}

// w = (1 - lr wd) w - lr g
template <class T>
void stepSgd(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    w[i] = c.keep * w[i] - c.lr * g;
  }
}

// m = mu m - lr wd w - lr g; w += m
template <class T>
void stepSgdMomentum(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict m = a.state[0];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T next = c.momentum * m[i] - c.lrWd * w[i] - c.lr * g;
    m[i] = next;
    w[i] = w[i] + next;
  }
}

// d = lr (g + wd w); m' = mu m - d; w += (1 + mu) m' - mu m
template <class T>
void stepNesterov(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict m = a.state[0];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T decayed = c.momentum * m[i];
    const T next = decayed - c.lr * (g + c.wd * w[i]);
    w[i] = w[i] - decayed + c.onePlusMomentum * next;
    m[i] = next;
  }
}

// g = clip(rescale gradient + wd w); lr carries the bias correction
template <class T>
void stepAdam(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict mean = a.state[0];
  T* __restrict variance = a.state[1];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i] + c.wd * w[i], c.clip);
    const T m = c.beta1 * mean[i] + c.oneMinusBeta1 * g;
    const T v = c.beta2 * variance[i] + c.oneMinusBeta2 * g * g;
    mean[i] = m;
    variance[i] = v;
    w[i] = w[i] - c.lr * m / (root(v) + c.epsilon);
  }
}

// w -= lr (m / (sqrt(v) + eps) + wd w); lr carries the bias correction
template <class T>
void stepAdamw(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict mean = a.state[0];
  T* __restrict variance = a.state[1];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T m = c.beta1 * mean[i] + c.oneMinusBeta1 * g;
    const T v = c.beta2 * variance[i] + c.oneMinusBeta2 * g * g;
    mean[i] = m;
    variance[i] = v;
    w[i] = w[i] - c.lr * (m / (root(v) + c.epsilon) + c.wd * w[i]);
  }
}

// h += g^2; w -= lr (g / sqrt(h + eps) + wd w)
template <class T>
void stepAdagrad(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict history = a.state[0];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T h = history[i] + g * g;
    history[i] = h;
    w[i] = w[i] - c.lr * (g / root(h + c.epsilon) + c.wd * w[i]);
  }
}

// g = clip(rescale gradient + wd w); n = (1 - gamma1) g^2 + gamma1 n; w -= lr g / sqrt(n + eps)
template <class T>
void stepRmsprop(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict square = a.state[0];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i] + c.wd * w[i], c.clip);
    const T n = c.oneMinusBeta1 * (g * g) + c.beta1 * square[i];
    square[i] = n;
    w[i] = bounded(w[i] - c.lr * (g / root(n + c.epsilon)), c.clipWeights);
  }
}

// Graves' version: d = gamma2 d - lr g / sqrt(n - mean^2 + eps); w += d
template <class T>
void stepRmspropCentered(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict square = a.state[0];
  T* __restrict mean = a.state[1];
  T* __restrict delta = a.state[2];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i] + c.wd * w[i], c.clip);
    const T n = c.oneMinusBeta1 * g * g + c.beta1 * square[i];
    const T m = c.oneMinusBeta1 * g + c.beta1 * mean[i];
    const T d = c.beta2 * delta[i] - c.lr * g / root(n - m * m + c.epsilon);
    square[i] = n;
    mean[i] = m;
    delta[i] = d;
    w[i] = bounded(w[i] + d, c.clipWeights);
  }
}

// d = sqrt(D + eps) / sqrt(G + eps) g; w -= d + wd w. There is no learning rate.
template <class T>
void stepAdadelta(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict gradSquare = a.state[0];
  T* __restrict deltaSquare = a.state[1];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T n = c.beta1 * gradSquare[i] + c.oneMinusBeta1 * g * g;
    const T d = root(deltaSquare[i] + c.epsilon) / root(n + c.epsilon) * g;
    gradSquare[i] = n;
    deltaSquare[i] = c.beta1 * deltaSquare[i] + c.oneMinusBeta1 * d * d;
    w[i] = w[i] - (d + c.wd * w[i]);
  }
}

// z += g - (sqrt(n + g^2) - sqrt(n)) w / lr; n += g^2;
// w = (sign(z) l1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > l1, else 0
template <class T>
void stepFtrl(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict zs = a.state[0];
  T* __restrict ns = a.state[1];
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T n = ns[i] + g * g;
    const T rootN = root(n);
    const T z = zs[i] + (g - (rootN - root(ns[i])) * w[i] / c.lr);
    zs[i] = z;
    ns[i] = n;
    const T edge = z > T(0) ? c.lambda1 : -c.lambda1;
    const T next = (edge - z) / ((c.ftrlBeta + rootN) / c.lr + c.wd);
    const T size = z > T(0) ? z : -z;
    // Written so that a NaN stays one.
    w[i] = size <= c.lambda1 ? T(0) : next;
  }
}

// w = (1 - lr wd) w - lr sign(gradient)
template <class T>
void stepSignSgd(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = c.rescale * grad[i];
    const T up = g > T(0) ? c.lr : T(0);
    const T down = g < T(0) ? c.lr : T(0);
    w[i] = c.keep * w[i] - (up - down);
  }
}

// m = mu m - (1 - mu) wd w - (1 - mu) g; w = (1 - lr wdLh) w + lr sign(m)
template <class T>
void stepSignum(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  T* __restrict m = a.state[0];
  const T* __restrict grad = a.grad;
  const T decay = c.oneMinusMomentum * c.wd;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T next = c.momentum * m[i] - decay * w[i] - c.oneMinusMomentum * g;
    m[i] = next;
    const T up = next > T(0) ? c.lr : T(0);
    const T down = next < T(0) ? c.lr : T(0);
    w[i] = c.keep * w[i] + (up - down);
  }
}

template <class T>
inline T lambDirection(T m, T v, T w, const StepScalars<T>& c) {
  return (m / c.correction1) / (root(v / c.correction2) + c.epsilon) + c.wd * w;
}

// First phase: the moments, and the direction for its norm.
template <class T>
void stepLambMoments(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  const T* __restrict w = a.weight;
  T* __restrict mean = a.state[0];
  T* __restrict variance = a.state[1];
  T* __restrict direction = a.direction;
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    const T g = bounded(c.rescale * grad[i], c.clip);
    const T m = c.beta1 * mean[i] + c.oneMinusBeta1 * g;
    const T v = c.beta2 * variance[i] + c.oneMinusBeta2 * g * g;
    mean[i] = m;
    variance[i] = v;
    direction[i] = lambDirection(m, v, w[i], c);
  }
}

// Second phase: the direction again, which is cheaper than keeping it; lr carries the trust ratio.
template <class T>
void stepLambApply(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  const T* __restrict mean = a.state[0];
  const T* __restrict variance = a.state[1];
  for (std::size_t i = 0; i < count; ++i) {
    w[i] = w[i] - c.lr * lambDirection(mean[i], variance[i], w[i], c);
  }
}

// w += rescale gradient
template <class T>
void stepAddScaled(const StepArrays<T>& a, std::size_t count, const StepScalars<T>& scalars) {
  const StepScalars<T> c = scalars;
  T* __restrict w = a.weight;
  const T* __restrict grad = a.grad;
  for (std::size_t i = 0; i < count; ++i) {
    w[i] = w[i] + c.rescale * grad[i];
  }
}

// Sixteen lanes whatever the machine's width, so that the order of additions is part of the
// definition.
template <class T>
double sumOfSquares(const T* x, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      const double value = static_cast<double>(x[i + j]);
      lanes[j] += value * value;
    }
  }
  for (std::size_t j = 0; i + j < count; ++j) {
    const double value = static_cast<double>(x[i + j]);
    lanes[j] += value * value;
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) {
      lanes[j] += lanes[j + width];
    }
  }
  return lanes[0];
}

}  // namespace
}  // namespace gradlink

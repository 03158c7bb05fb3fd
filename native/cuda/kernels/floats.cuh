// Elements of float32, float16 and bfloat16 for kernels that serve all three, whole vectors and
// single elements: they compute in float32 anyway, and a branch that all threads take together
// costs less than a kernel that drivers compile.
#pragma once

#include "core/kernels/dtype.h"
#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// Elements that a thread takes at a time.
inline constexpr unsigned kTaken = 4;

/// The first `many` of kTaken elements that lie `apart`, as they are in memory: loads are in flight
/// together before anything is made of them. Neighbours are one, or all, which then are aligned.
template <unsigned apart = 1>
struct Elements {
  /// Neighbours of a half type are two a word.
  std::uint32_t words[kTaken];

  GRADLINK_DEVICE void load(DType type, unsigned many, const void* from, std::uint64_t at) {
    if constexpr (apart == 1) {
      if (many == 1) {
        words[0] = one(type, from, at);
      } else if (type == DType::float32) {
        const Vector v = static_cast<const Vector*>(from)[at / kTaken];
        words[0] = v.x;
        words[1] = v.y;
        words[2] = v.z;
        words[3] = v.w;
      } else {
        const std::uint64_t v = static_cast<const std::uint64_t*>(from)[at / kTaken];
        words[0] = lowOf(v);
        words[1] = highOf(v);
      }
    } else {
      GRADLINK_UNROLL
      for (unsigned i = 0; i < kTaken; ++i) {
        if (i < many) words[i] = one(type, from, at + i * apart);
      }
    }
  }

  GRADLINK_DEVICE void store(DType type, unsigned many, void* to, std::uint64_t at) const {
    static_assert(apart == 1);
    if (type == DType::float32) {
      if (many == 1) {
        static_cast<std::uint32_t*>(to)[at] = words[0];
      } else {
        storeVector(static_cast<Vector*>(to) + at / kTaken,
                    {words[0], words[1], words[2], words[3]});
      }
    } else if (many == 1) {
      static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(words[0]);
    } else {
      static_cast<std::uint64_t*>(to)[at / kTaken] = joined(words[0], words[1]);
    }
  }

  GRADLINK_DEVICE void unpack(DType type, float* out) const {
    if (type == DType::float32) {
      GRADLINK_UNROLL
      for (unsigned i = 0; i < kTaken; ++i) out[i] = floatOf(words[i]);
    } else if (type == DType::float16) {
      unpackHalves<Float16>(out);
    } else {
      unpackHalves<Bfloat16>(out);
    }
  }

  GRADLINK_DEVICE void pack(DType type, const float* in) {
    static_assert(apart == 1);
    if (type == DType::float32) {
      GRADLINK_UNROLL
      for (unsigned i = 0; i < kTaken; ++i) words[i] = bitsOf(in[i]);
    } else if (type == DType::float16) {
      words[0] = Float16::packWord(in);
      words[1] = Float16::packWord(in + 2);
    } else {
      words[0] = Bfloat16::packWord(in);
      words[1] = Bfloat16::packWord(in + 2);
    }
  }

 private:
  static GRADLINK_DEVICE std::uint32_t one(DType type, const void* from, std::uint64_t at) {
    if (type == DType::float32) return static_cast<const std::uint32_t*>(from)[at];
    return static_cast<const std::uint16_t*>(from)[at];
  }
  template <class Half>
  GRADLINK_DEVICE void unpackHalves(float* out) const {
    if constexpr (apart == 1) {
      Half::unpackWord(words[0], out);
      Half::unpackWord(words[1], out + 2);
    } else {
      GRADLINK_UNROLL
      for (unsigned i = 0; i < kTaken; ++i) {
        out[i] = Half::widen(static_cast<std::uint16_t>(words[i]));
      }
    }
  }
};

/// A sum of halves is a half.
GRADLINK_DEVICE float roundedTo(DType type, float x) {
  if (type == DType::float32) return x;
  return type == DType::float16 ? Float16::widen(Float16::narrow(x))
                                : Bfloat16::widen(Bfloat16::narrow(x));
}

/// Calls `take(many, at)` for this thread's part of a block's tile: kTaken elements from `at` on
/// where the arrays are aligned, and single ones.
template <class Take>
GRADLINK_DEVICE void forPartsOfTile(std::uint64_t tile, std::uint64_t tileElements,
                                    std::uint64_t count, bool aligned, Take take) {
  const std::uint64_t begin = tile * tileElements;
  const std::uint64_t rest = count - begin;
  const auto elements = static_cast<unsigned>(rest < tileElements ? rest : tileElements);
  const unsigned vectors = aligned ? elements / kTaken : 0;
  const unsigned parts = vectors + (elements - vectors * kTaken);
  GRADLINK_KEEP_ROLLED
  for (unsigned i = threadIdx.x; i < parts; i += kThreads) {
    const bool whole = i < vectors;
    take(whole ? kTaken : 1, begin + (whole ? i * kTaken : i + vectors * (kTaken - 1)));
  }
}

}  // namespace gradlink::kernels

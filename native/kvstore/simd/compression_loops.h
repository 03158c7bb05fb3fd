// Gradient compression's loops. Included by one file a SIMD level. Codes are made a 32-bit word at
// a time, its first element in the highest bits, and stored big-endian: that puts the first element
// into the top bits of each byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink {
namespace {

inline void storeWord(std::uint8_t* codes, std::uint32_t word) {
  codes[0] = static_cast<std::uint8_t>(word >> 24);
  codes[1] = static_cast<std::uint8_t>(word >> 16);
  codes[2] = static_cast<std::uint8_t>(word >> 8);
  codes[3] = static_cast<std::uint8_t>(word);
}
inline std::uint32_t loadWord(const std::uint8_t* codes) {
  return static_cast<std::uint32_t>(codes[0]) << 24 | static_cast<std::uint32_t>(codes[1]) << 16 |
         static_cast<std::uint32_t>(codes[2]) << 8 | static_cast<std::uint32_t>(codes[3]);
}

// What is sent for r with 2bit: t, -t or 0. Subtracting it from r leaves the residual: exactly r -
// t or r + t.
inline float sent2(float r, float threshold) {
  const float up = r >= threshold ? threshold : 0.0f;
  return r <= -threshold ? -threshold : up;
}
inline float sent1(float r, float threshold) { return r > threshold ? 1.0f : -1.0f; }

// `out` may be `grad`, hence no __restrict on them.
void quantize2(const float* grad, float* residual, float* out, float threshold, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float r = residual[i] + grad[i];
    const float sent = sent2(r, threshold);
    residual[i] = r - sent;
    out[i] = sent;
  }
}

void quantize1(const float* grad, float* residual, float* out, float threshold, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float r = residual[i] + grad[i];
    const float sent = sent1(r, threshold);
    residual[i] = r - sent;
    out[i] = sent;
  }
}

inline std::uint32_t code2(const float* grad, float* residual, float threshold, std::size_t i) {
  const float r = residual[i] + grad[i];
  residual[i] = r - sent2(r, threshold);
  const std::uint32_t up = r >= threshold ? 3u : 0u;
  return r <= -threshold ? 2u : up;
}

void compress2(const float* __restrict grad, float* __restrict residual,
               std::uint8_t* __restrict codes, float threshold, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16, codes += 4) {
    std::uint32_t word = 0;
    for (std::uint32_t j = 0; j < 16; ++j) {
      word |= code2(grad, residual, threshold, i + j) << (30 - 2 * j);
    }
    storeWord(codes, word);
  }
  if (i < count) {
    std::uint32_t word = 0;
    for (std::uint32_t j = 0; i + j < count; ++j) {
      word |= code2(grad, residual, threshold, i + j) << (30 - 2 * j);
    }
    storeWord(codes, word);
  }
}

inline std::uint32_t code1(const float* grad, float* residual, float threshold, std::size_t i) {
  const float r = residual[i] + grad[i];
  residual[i] = r - sent1(r, threshold);
  return r > threshold ? 1u : 0u;
}

void compress1(const float* __restrict grad, float* __restrict residual,
               std::uint8_t* __restrict codes, float threshold, std::size_t count) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32, codes += 4) {
    std::uint32_t word = 0;
    for (std::uint32_t j = 0; j < 32; ++j) {
      word |= code1(grad, residual, threshold, i + j) << (31 - j);
    }
    storeWord(codes, word);
  }
  if (i < count) {
    std::uint32_t word = 0;
    for (std::uint32_t j = 0; i + j < count; ++j) {
      word |= code1(grad, residual, threshold, i + j) << (31 - j);
    }
    storeWord(codes, word);
  }
}

inline float meaning2(std::uint32_t word, std::uint32_t j, float threshold) {
  const std::uint32_t code = (word >> (30 - 2 * j)) & 3u;
  const float up = code == 3u ? threshold : 0.0f;
  return code == 2u ? -threshold : up;
}

void decompress2(const std::uint8_t* __restrict codes, float* __restrict out, float threshold,
                 std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16, codes += 4) {
    const std::uint32_t word = loadWord(codes);
    for (std::uint32_t j = 0; j < 16; ++j) {
      out[i + j] = meaning2(word, j, threshold);
    }
  }
  if (i < count) {
    const std::uint32_t word = loadWord(codes);
    for (std::uint32_t j = 0; i + j < count; ++j) {
      out[i + j] = meaning2(word, j, threshold);
    }
  }
}

inline float meaning1(std::uint32_t word, std::uint32_t j) {
  return ((word >> (31 - j)) & 1u) != 0 ? 1.0f : -1.0f;
}

void decompress1(const std::uint8_t* __restrict codes, float* __restrict out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32, codes += 4) {
    const std::uint32_t word = loadWord(codes);
    for (std::uint32_t j = 0; j < 32; ++j) {
      out[i + j] = meaning1(word, j);
    }
  }
  if (i < count) {
    const std::uint32_t word = loadWord(codes);
    for (std::uint32_t j = 0; i + j < count; ++j) {
      out[i + j] = meaning1(word, j);
    }
  }
}

}  // namespace
}  // namespace gradlink

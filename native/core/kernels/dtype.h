// Element types: what the bytes of a buffer mean. The numbers cross the Node-API boundary
// (lib/native/load.ts).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink {

enum class DType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  bfloat16 = 7,
  float32 = 8,
  float64 = 9,
  // Only NCCL computes with these: no engine, kernel or store of ours does.
  float8e4m3 = 10,
  float8e5m2 = 11,
};

/// The types that everything computes with, and those that buffers on GPUs may have.
inline constexpr int kDTypeCount = 10;
inline constexpr int kGpuDTypeCount = 12;

constexpr bool isFloat8(DType dtype) { return dtype >= DType::float8e4m3; }

constexpr std::size_t sizeOf(DType dtype) {
  constexpr std::size_t kSizes[kGpuDTypeCount] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
  return kSizes[static_cast<int>(dtype)];
}

constexpr const char* nameOf(DType dtype) {
  constexpr const char* kNames[kGpuDTypeCount] = {"int8",    "uint8",   "int32",      "uint32",
                                                  "int64",   "uint64",  "float16",    "bfloat16",
                                                  "float32", "float64", "float8e4m3", "float8e5m2"};
  return kNames[static_cast<int>(dtype)];
}

}  // namespace gradlink

// Element types. The numbers cross the Node-API boundary (lib/native/load.ts).
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
  // Only NCCL computes with these.
  float8e4m3 = 10,
  float8e5m2 = 11,
  // Only the host computes with it.
  int16 = 12,
};

/// All types; the first ones that GPU buffers may have; and those that everything computes with.
inline constexpr int kDTypeCount = 13;
inline constexpr int kGpuDTypeCount = 12;
inline constexpr int kCommonDTypeCount = 10;

inline constexpr DType kHostDTypes[] = {
    DType::int8,   DType::uint8,   DType::int16,    DType::int32,   DType::uint32, DType::int64,
    DType::uint64, DType::float16, DType::bfloat16, DType::float32, DType::float64};

constexpr bool isFloat8(DType dtype) {
  return dtype == DType::float8e4m3 || dtype == DType::float8e5m2;
}
/// 16 bits and wider.
constexpr bool isFloat(DType dtype) { return dtype >= DType::float16 && dtype <= DType::float64; }
constexpr bool isHalf(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }
constexpr bool isOnGpus(DType dtype) { return static_cast<int>(dtype) < kGpuDTypeCount; }

constexpr std::size_t sizeOf(DType dtype) {
  constexpr std::size_t kSizes[kDTypeCount] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 2};
  return kSizes[static_cast<int>(dtype)];
}

constexpr const char* nameOf(DType dtype) {
  constexpr const char* kNames[kDTypeCount] = {
      "int8",     "uint8",   "int32",   "uint32",     "int64",      "uint64", "float16",
      "bfloat16", "float32", "float64", "float8e4m3", "float8e5m2", "int16"};
  return kNames[static_cast<int>(dtype)];
}

}  // namespace gradlink

// Element types: what the bytes of a buffer mean. The numbers cross the Node-API boundary
// (lib/native.ts).
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
};

inline constexpr int kDTypeCount = 10;

constexpr std::size_t sizeOf(DType dtype) {
  constexpr std::size_t kSizes[kDTypeCount] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}

constexpr const char* nameOf(DType dtype) {
  constexpr const char* kNames[kDTypeCount] = {"int8",    "uint8",  "int32",   "uint32",
                                               "int64",   "uint64", "float16", "bfloat16",
                                               "float32", "float64"};
  return kNames[static_cast<int>(dtype)];
}

}  // namespace gradlink

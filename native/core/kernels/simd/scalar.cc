// Portable: 16-byte vectors that the compiler lowers to the target's baseline (SSE2 on x86-64).
#include <cstdint>
#include <cstring>

#include "core/kernels/simd/kernel_table.h"

namespace gradlink::simd {
namespace {

constexpr int kVectorBytes = 16;

template <class V>
inline __attribute__((always_inline)) void streamStore(void* to, V value) {
  std::memcpy(to, &value, sizeof(V));
}
inline __attribute__((always_inline)) void streamFence() {}

}  // namespace
}  // namespace gradlink::simd

// clang-format off
#include "core/kernels/simd/vectors.inc"
#include "core/kernels/simd/kernels.inc"
// clang-format on

namespace gradlink::simd {
namespace {
constexpr KernelTable kTable = makeTable("scalar");
}
const KernelTable* scalarKernels() { return &kTable; }
}  // namespace gradlink::simd

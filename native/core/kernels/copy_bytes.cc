#include "core/kernels/copy_bytes.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/kernels/simd/kernel_table.h"

namespace gradlink {
namespace {

double fastestOf(void (*copy)(void*, const void*, std::size_t), void* to, const void* from,
                 std::size_t bytes) {
  using Clock = std::chrono::steady_clock;
  auto fastest = Clock::duration::max();
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    copy(to, from, bytes);
    fastest = std::min(fastest, Clock::now() - start);
  }
  return std::chrono::duration<double>(fastest).count();
}

// Measured once for each process, in about 50 microseconds.
bool memcpyIsSlow() {
  constexpr std::size_t kBytes = 16 << 10;
  constexpr std::size_t kPage = 4096;
  std::vector<std::byte> memory(2 * kBytes + 2 * kPage);
  std::byte* const from =
      memory.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage);
  std::byte* const to = from + kBytes + 16;
  const auto plain = [](void* dst, const void* src, std::size_t bytes) {
    std::memcpy(dst, src, bytes);
  };
  return fastestOf(plain, to, from, kBytes) > 2 * fastestOf(copyByVectors, to, from, kBytes);
}

}  // namespace

void copyByVectors(void* to, const void* from, std::size_t bytes) {
  const auto copy = simd::currentLevel().copy;
  void* const dst[] = {to};
  const std::size_t head =
      (simd::kLineBytes - reinterpret_cast<std::uintptr_t>(to) % simd::kLineBytes) %
      simd::kLineBytes;
  // Stores that cross cache lines cost a quarter.
  const std::size_t first = std::min(head, bytes);
  copy({dst, 1, 0, from, 0, first});
  copy({dst, 1, 0, from, first, bytes});
}

void copyLong(void* to, const void* from, std::size_t bytes) {
  static const bool slow = memcpyIsSlow();
  if (slow) return copyByVectors(to, from, bytes);
  std::memcpy(to, from, bytes);
}

}  // namespace gradlink

// Which instruction set this process uses.
#include <cstdlib>
#include <cstring>

#include "core/kernels/simd/kernel_table.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace gradlink::simd {
namespace {

#if defined(__x86_64__) || defined(__i386__)
// clang before 15 lacks "f16c" in the builtin.
bool machineHasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
// These also check that the operating system saves the wide registers.
bool machineHasAvx2() { return __builtin_cpu_supports("avx2") && machineHasF16c(); }
bool machineHasAvx512() {
  return machineHasAvx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#else
bool machineHasAvx2() { return false; }
bool machineHasAvx512() { return false; }
#endif

// All levels of all architectures, the narrowest first: GRADLINK_SIMD may name a foreign one.
constexpr const char* kNames[] = {"scalar", "neon", "avx2", "avx512"};
constexpr int kNameCount = 4;

int rankOf(const char* name) {
  for (int i = 0; i < kNameCount; ++i) {
    if (std::strcmp(name, kNames[i]) == 0) return i;
  }
  return kNameCount;
}

}  // namespace

int availableLevels(const KernelTable* (&levels)[3]) {
  levels[0] = scalarKernels();
  int count = 1;
  const auto add = [&](const KernelTable* table) {
    if (table != nullptr) levels[count++] = table;
  };
  add(neonKernels());
  if (machineHasAvx2()) add(avx2Kernels());
  if (machineHasAvx512()) add(avx512Kernels());
  return count;
}

const KernelTable& levelFor(const char* name) {
  const KernelTable* levels[3];
  int best = availableLevels(levels) - 1;
  if (name != nullptr) {
    while (best > 0 && rankOf(levels[best]->name) > rankOf(name)) --best;
  }
  return *levels[best];
}

const KernelTable& currentLevel() {
  static const KernelTable& level = levelFor(std::getenv("GRADLINK_SIMD"));
  return level;
}

}  // namespace gradlink::simd

// Every SIMD level that this machine can run.
#pragma once

#include <vector>

#include "core/kernels/simd/kernel_table.h"

namespace gradlink {

inline std::vector<const simd::KernelTable*> allLevels() {
  const simd::KernelTable* levels[3];
  const int count = simd::availableLevels(levels);
  return {levels, levels + count};
}

}  // namespace gradlink

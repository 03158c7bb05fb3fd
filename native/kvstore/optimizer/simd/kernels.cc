#include "kvstore/optimizer/simd/kernels.h"

#include <cstring>

#include "core/kernels/reduce_kernels.h"

namespace gradlink {

extern const KvKernels kKernelsGeneric;
#if defined(__x86_64__)
extern const KvKernels kKernelsAvx2;
extern const KvKernels kKernelsAvx512;
#endif

const KvKernels* kvKernels(const char* level) {
#if defined(__x86_64__)
  if (std::strcmp(level, "avx512") == 0) {
    const bool present = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return present ? &kKernelsAvx512 : nullptr;
  }
  if (std::strcmp(level, "avx2") == 0) {
    return __builtin_cpu_supports("avx2") ? &kKernelsAvx2 : nullptr;
  }
#endif
  return std::strcmp(level, "generic") == 0 ? &kKernelsGeneric : nullptr;
}

const KvKernels& kvKernels() {
  static const KvKernels& chosen = []() -> const KvKernels& {
    const KvKernels* kernels = kvKernels(simdLevel());
    return kernels != nullptr ? *kernels : kKernelsGeneric;
  }();
  return chosen;
}

}  // namespace gradlink

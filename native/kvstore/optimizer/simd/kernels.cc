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
  if (std::strcmp(level, "generic") == 0) return &kKernelsGeneric;
#if defined(__x86_64__)
  if (!hasSimdLevel(level)) return nullptr;
  if (std::strcmp(level, "avx512") == 0) return &kKernelsAvx512;
  if (std::strcmp(level, "avx2") == 0) return &kKernelsAvx2;
#endif
  return nullptr;
}

const KvKernels& kvKernels() {
  static const KvKernels& chosen = []() -> const KvKernels& {
    const KvKernels* kernels = kvKernels(simdLevel());
    return kernels != nullptr ? *kernels : kKernelsGeneric;
  }();
  return chosen;
}

}  // namespace gradlink

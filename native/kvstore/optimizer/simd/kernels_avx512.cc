// The loops compiled for avx512; the flags are in kvstore/sources.cmake.
#include "kvstore/optimizer/simd/kernel_table.h"

namespace gradlink {

extern const KvKernels kKernelsAvx512;
const KvKernels kKernelsAvx512 = tableOf("avx512");

}  // namespace gradlink

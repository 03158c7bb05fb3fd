// The loops compiled for avx2; the flags are in kvstore/sources.cmake.
#include "kvstore/optimizer/simd/kernel_table.h"

namespace gradlink {

extern const KvKernels kKernelsAvx2;
const KvKernels kKernelsAvx2 = tableOf("avx2");

}  // namespace gradlink

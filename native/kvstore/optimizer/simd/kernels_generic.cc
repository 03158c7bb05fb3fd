// The loops compiled for generic; the flags are in kvstore/sources.cmake.
#include "kvstore/optimizer/simd/kernel_table.h"

namespace gradlink {

extern const KvKernels kKernelsGeneric;
const KvKernels kKernelsGeneric = tableOf("generic");

}  // namespace gradlink

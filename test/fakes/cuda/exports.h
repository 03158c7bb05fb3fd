// The functions that native/cuda looks up, with the types it calls them with: a definition of
// another type does not compile.
#pragma once

#include "cuda/status.h"

namespace gradlink::fake {

extern "C" {
#define GRADLINK_DECLARE(symbol, member, arguments) \
  __attribute__((visibility("default"))) Status symbol arguments;
GRADLINK_CUDA_REQUIRED(GRADLINK_DECLARE)
GRADLINK_CUDA_OPTIONAL(GRADLINK_DECLARE)
#undef GRADLINK_DECLARE
}

}  // namespace gradlink::fake

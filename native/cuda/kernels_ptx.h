// The PTX text of kernels.cu, as scripts/ptx.mjs made it: the build puts native/cuda/kernels.ptx
// into the library.
#pragma once

namespace gradlink::cuda {

/// Ends in a null character, as cuModuleLoadData wants it.
extern const char kernelsPtx[];

}  // namespace gradlink::cuda

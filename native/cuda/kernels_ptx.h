// The PTX texts of kernels.cu and step_kernels.cu, as scripts/ptx.mjs made them: the build puts
// native/cuda/*.ptx into the library.
#pragma once

namespace gradlink::cuda {

/// Each ends in a null character, as cuModuleLoadData wants it.
extern const char kKernelsPtx[];
extern const char kStepKernelsPtx[];

}  // namespace gradlink::cuda

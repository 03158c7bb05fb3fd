// The PTX texts of kernels.cu and step_kernels.cu, as scripts/ptx.mjs made them: the build puts
// native/cuda/*.ptx into the library.
#pragma once

namespace gradlink::cuda {

/// Each ends in a null character, as cuModuleLoadData wants it.
extern const char kKernelsPtx[];
extern const char kStepKernelsPtx[];
/// The first digits of their SHA-256.
extern const char kKernelsDigest[];
extern const char kStepKernelsDigest[];

}  // namespace gradlink::cuda

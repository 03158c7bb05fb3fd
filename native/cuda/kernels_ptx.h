// The PTX texts of kernels.cu and step_kernels.cu, as scripts/ptx.mjs made them: the build puts
// those of native/cuda/ptx.json.br into the library, compressed.
#pragma once

#include <cstddef>
#include <vector>

namespace gradlink::cuda {

struct PackedPtx {
  const unsigned char* data;
  std::size_t bytes;
};

extern const PackedPtx kKernelsPtx;
extern const PackedPtx kStepKernelsPtx;
/// The first digits of the texts' SHA-256.
extern const char kKernelsDigest[];
extern const char kStepKernelsDigest[];

/// The text, which ends in a null character, as cuModuleLoadData wants it.
///
/// @throws Error backendUnavailable where nothing here unpacks it
std::vector<char> textOf(const PackedPtx&);

}  // namespace gradlink::cuda

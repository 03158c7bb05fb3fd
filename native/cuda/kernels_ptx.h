// The kernels as the library carries them: PTX that native/cuda/ptx.mjs takes from
// native/cuda/ptx.json.br, in modules of kernels that are used together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradlink::cuda {

struct PackedPtx {
  const unsigned char* data;
  std::size_t bytes;
};

struct KernelCode {
  /// "sumFloat32", "weighted", "compression", "diagnostics", "patternFloat32", "stepAdam",
  /// "LambSquares", "norms".
  const char* name;
  PackedPtx ptx;
  std::span<const char* const> kernels;
  /// "kernels", of kernels.cu. Machine code is made of all of a source.
  const char* source;
  /// The first digits of the SHA-256 of the source's PTX: a cubin of other kernels has another.
  const char* digest;
};

std::span<const KernelCode> kernelCodes();

/// The text, which ends in a null character, as cuModuleLoadData wants it.
///
/// @throws Error backendUnavailable where nothing here unpacks it
std::vector<char> textOf(const PackedPtx&);

}  // namespace gradlink::cuda

// The embedded kernels: PTX from ptx.json.br (ptx.mjs), in modules of kernels used together.
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
  /// "sumFloat32", "weighted", "compression", "diagnostics", "pattern", "stepAdam",
  /// "LambSquares", "norms".
  const char* name;
  PackedPtx ptx;
  std::span<const char* const> kernels;
  /// "kernels" for kernels.cu. A cubin is made of a whole source.
  const char* source;
  /// The beginning of the SHA-256 of the source's PTX, which names its cubin.
  const char* digest;
};

std::span<const KernelCode> kernelCodes();

/// The text with a terminating null, as cuModuleLoadData expects.
///
/// @throws Error backendUnavailable if no zlib can unpack it
std::vector<char> textOf(const PackedPtx&);

}  // namespace gradlink::cuda

// A GPU's code of the kernels: a cubin of its architecture, or PTX, which the driver compiles.
#pragma once

#include <optional>
#include <string>

#include "cuda/driver.h"
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {

class Device;

struct Cubin {
  /// Compressed by zlib.
  std::string file;
  /// "sm_90".
  std::string architecture;
};

/// The cubin for this compute capability: of the same major version and at most the same minor one.
/// In cubins/ beside this library or in GRADLINK_CUBINS; an empty value forces PTX.
std::optional<Cubin> cubinFor(const KernelCode& code, int major, int minor);

struct LoadedImage {
  ModuleHandle module = nullptr;
  /// "cubin sm_90", or "compiled from PTX" with the reason.
  std::string kind;
};

/// LoadedImage::kind of what loadImage would load, or "none: " and why it would fail.
std::string imageFor(const KernelCode& code, const Device& device);

/// Loads into the device's current context: the cubin, or PTX if there is none or it is refused.
LoadedImage loadImage(const KernelCode& code, const Device& device);

}  // namespace gradlink::cuda

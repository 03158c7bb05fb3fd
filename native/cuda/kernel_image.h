// What a GPU is given of the kernels: machine code that was made for its like and lies beside the
// library (a cubin), or PTX, which its driver compiles first.
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

/// The one to load on GPUs of this compute capability: a GPU runs what was made for its major
/// version and a minor one that is not above its own. They lie in cubins/ beside this library, or
/// in the folder that GRADLINK_CUBINS names; empty, it keeps all GPUs to PTX.
std::optional<Cubin> cubinFor(const KernelCode& code, int major, int minor);

struct LoadedImage {
  ModuleHandle module = nullptr;
  /// "cubin sm_90", or "compiled from PTX" and why.
  std::string kind;
};

/// What loadImage would load, as LoadedImage::kind says it.
std::string imageFor(const KernelCode& code, const Device& device);

/// Into the current context, which is the device's: the cubin, or PTX where there is none or the
/// driver does not take it.
LoadedImage loadImage(const KernelCode& code, const Device& device);

}  // namespace gradlink::cuda

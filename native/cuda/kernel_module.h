// One module of kernels on one device: loading it, and launching from it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "cuda/device.h"
#include "cuda/kernel_image.h"
#include "cuda/stream.h"

namespace gradlink::cuda {

/// How many blocks of b cover a.
constexpr std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// Never unloaded: contexts last as long as the process.
class KernelModule {
 public:
  /// Loads every kernel now, because loading one later waits for what runs on the device, and what
  /// runs may wait for the kernel.
  KernelModule(Device&, const KernelCode& code);
  KernelModule(const KernelModule&) = delete;
  KernelModule& operator=(const KernelModule&) = delete;

  /// LoadedImage::kind.
  const std::string& image() const { return image_; }

  /// Queues `blocks` blocks of `threads` threads. The arguments' types must be the kernel's own.
  template <class... Arguments>
  void launch(Stream& stream, std::string_view kernel, std::uint64_t blocks, unsigned threads,
              Arguments... arguments) const {
    void* addresses[] = {&arguments...};
    launchWith(stream, kernel, blocks, threads, addresses);
  }

 private:
  void launchWith(Stream&, std::string_view kernel, std::uint64_t blocks, unsigned threads,
                  void** arguments) const;

  Device& device_;
  std::string image_;
  std::map<std::string_view, FunctionHandle> functions_;
};

/// KernelCode::name's module on this device, loaded at the first call.
const KernelModule& kernelModule(Device&, std::string_view module);

/// "cubin sm_90" or "compiled from PTX": what was loaded of sums, or would be.
std::string kernelsOf(const Device&);

/// Loads these modules on all of these devices at once: before anything spins or waits for a peer
/// there, because loading waits for the device.
void loadKernels(std::span<Device* const> devices, std::initializer_list<std::string_view> modules);

}  // namespace gradlink::cuda

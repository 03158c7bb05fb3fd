// A module of kernels on one device: loading and launching.
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

constexpr std::uint64_t divideUp(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// Never unloaded: contexts last as long as the process.
class KernelModule {
 public:
  /// Loads every kernel now: loading waits for running work, which may wait for the kernel.
  KernelModule(Device&, const KernelCode& code);
  KernelModule(const KernelModule&) = delete;
  KernelModule& operator=(const KernelModule&) = delete;

  /// LoadedImage::kind.
  const std::string& image() const { return image_; }

  /// Queues `blocks` blocks of `threads` threads. The argument types must match the kernel's.
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

/// The named module on this device, loaded at the first call.
const KernelModule& kernelModule(Device&, std::string_view module);

/// The source of the sum kernels on this device: "cubin sm_90", "compiled from PTX",
/// or "none: " and why.
std::string kernelsOf(const Device&);

/// Loads these modules before anything spins or waits for a peer: loading waits for the devices.
void loadKernels(std::span<Device* const> devices, std::initializer_list<std::string_view> modules);

}  // namespace gradlink::cuda

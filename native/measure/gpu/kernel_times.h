// Times the kernels of stores: sums of arrays and optimizer steps, beside the GPU's own copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradlink::measure {

/// All in float32.
enum class GpuLoop : std::uint8_t {
  copy = 0,         // by a copy engine's command; 1 read, 1 write
  sum = 1,          // k read, 1 written
  sgdMomentum = 2,  // k gradients summed, weight and momentum read and written
};
inline constexpr int kGpuLoopCount = 3;

struct GpuLoopOptions {
  GpuLoop loop = GpuLoop::copy;
  int gpu = 0;
  /// Elements of one array; there are `arrays` sources and the outputs.
  std::size_t count = 0;
  /// k; copy ignores it.
  int arrays = 1;
  int warmup = 4;
  /// Passes of one sample.
  int loops = 16;
  int samples = 5;
  double timeoutMs = 60000;
};

struct GpuLoopResult {
  /// Seconds of one pass, for each sample.
  std::vector<double> seconds;
  double bytes = 0;
};

/// Blocks. Throws the driver's errors, and invalidArgument for counts below 1.
GpuLoopResult timeGpuLoop(const GpuLoopOptions&);

}  // namespace gradlink::measure

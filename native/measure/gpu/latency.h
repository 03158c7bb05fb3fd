// The latency of one load: each address is the previous value. Multiprocessors differ in their
// distance to memory, so each is measured alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/gpu/copies.h"

namespace gradlink::measure {

struct GpuLatencyOptions {
  int by = 0;
  /// The memory that it reads: a GPU's ordinal or kHostMemory.
  int memory = kHostMemory;
  std::size_t nodes = 16384;
  std::size_t stride = 128;
  /// Of one sample, divided evenly among the multiprocessors.
  std::uint32_t steps = 1 << 18;
  int samples = 3;
  bool affinity = true;
  double timeoutMs = 120000;
};

struct GpuLatencyResult {
  /// Of one load, averaged over the multiprocessors; one for each sample.
  std::vector<double> seconds;
  /// Of one load for each multiprocessor, averaged over the samples.
  std::vector<double> multiprocessorSeconds;
  /// Samples with a wrong last address.
  std::uint64_t wrong = 0;
  bool near = false;
};

/// Blocks. Throws the driver's errors; unsupported if `by` cannot access the memory;
/// invalidArgument for counts below 1; timeout.
GpuLatencyResult timeGpuLatency(const GpuLatencyOptions&);

}  // namespace gradlink::measure

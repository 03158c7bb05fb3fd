// How long one load takes: each load's address is the value of the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/gpu/copies.h"

namespace gradlink::measure {

struct GpuLatencyOptions {
  /// The GPU that reads.
  int by = 0;
  /// What it reads: a GPU's memory, or kHostMemory.
  int memory = kHostMemory;
  std::size_t nodes = 16384;
  std::size_t stride = 128;
  std::uint32_t steps = 100000;
  int samples = 3;
  bool affinity = true;
  double timeoutMs = 120000;
};

struct GpuLatencyResult {
  /// Of one load, a value a sample.
  std::vector<double> seconds;
  /// Samples that did not end where the list leads.
  std::uint64_t wrong = 0;
  bool near = false;
};

/// Blocks. Throws what the driver throws; unsupported where `by` does not reach the memory;
/// invalidArgument for counts below 1; timeout.
GpuLatencyResult timeGpuLatency(const GpuLatencyOptions&);

}  // namespace gradlink::measure

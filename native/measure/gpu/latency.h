// How long one load takes: each load's address is the value of the one before. Multiprocessors lie
// nearer to some memory than to other, and so each of them has its turn, alone.
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
  /// Of one sample, over all multiprocessors; each takes as many.
  std::uint32_t steps = 1 << 18;
  int samples = 3;
  bool affinity = true;
  double timeoutMs = 120000;
};

struct GpuLatencyResult {
  /// Of one load, the mean of all multiprocessors, a value a sample.
  std::vector<double> seconds;
  /// The same of each multiprocessor, the mean of all samples.
  std::vector<double> multiprocessorSeconds;
  /// Samples that did not end where the list leads.
  std::uint64_t wrong = 0;
  bool near = false;
};

/// Blocks. Throws what the driver throws; unsupported where `by` does not reach the memory;
/// invalidArgument for counts below 1; timeout.
GpuLatencyResult timeGpuLatency(const GpuLatencyOptions&);

}  // namespace gradlink::measure

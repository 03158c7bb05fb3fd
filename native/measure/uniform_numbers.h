// The gradients for measuring stores: determined by the start of the stream, on every machine and
// with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/dtype.h"

namespace gradlink::measure {

struct DrawnArray {
  void* data = nullptr;
  std::size_t count = 0;
  std::uint32_t start = 0;
};

/// Uniform numbers from [-1, 1] of a float type. Threads of the pool touch the memory first.
void drawUniform(std::span<const DrawnArray> arrays, DType);

/// Requests huge pages if permitted, and touches the memory with all threads. Keeps its contents.
void touchMemory(void* data, std::size_t bytes);

}  // namespace gradlink::measure

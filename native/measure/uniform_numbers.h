// The gradients that a store is measured with: the same for the same start on every machine,
// however many threads draw them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/dtype.h"

namespace gradlink::measure {

/// An array and the start of its stream.
struct DrawnArray {
  void* data = nullptr;
  std::size_t count = 0;
  std::uint32_t start = 0;
};

/// Uniform numbers from [-1, 1], of a float type. All arrays at once, on the thread pool: threads
/// touch the memory first where they are.
void drawUniform(std::span<const DrawnArray> arrays, DType);

/// Untouched memory: asks for huge pages, where the system leaves that to programs, and touches all
/// of it with all threads. What it holds stays.
void touchMemory(void* data, std::size_t bytes);

}  // namespace gradlink::measure

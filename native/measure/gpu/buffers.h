// Memory for measured copies, filled with a pattern and checked by a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "cuda/kernels.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// On a GPU, or page-locked on the host near one.
class GpuBuffer {
 public:
  /// place: a GPU's ordinal or kHostMemory. `user`: host memory's GPU, near which `affinity` puts
  /// it.
  GpuBuffer(int place, int user, std::size_t bytes, bool affinity);

  bool isHost() const { return place_ < 0; }
  void* data() const { return isHost() ? pinned_.data() : memory_.data(); }
  std::size_t bytes() const { return bytes_; }
  int keeper() const { return isHost() ? user_ : place_; }
  /// Whether host memory was allocated on the GPU's node.
  bool isNear() const { return near_; }

 private:
  int place_;
  int user_;
  std::size_t bytes_;
  bool near_ = false;
  cuda::DeviceMemory memory_;
  cuda::PinnedMemory pinned_;
};

/// Fills and checks with the kernels of native/measure/pattern.h's data, on its own streams.
class GpuChecker {
 public:
  /// Writes the data of `number` (0 .. numbers - 1) and waits.
  void fill(const GpuBuffer&, int number, int numbers);
  /// Writes zeros and waits, so earlier data cannot pass for a copy.
  void spoil(const GpuBuffer&);
  /// Elements of four bytes that differ from the data of `number`.
  std::uint64_t countWrong(const GpuBuffer&, int number, int numbers);
  /// The first of them; nothing if a second look finds none.
  std::optional<WrongElement> firstWrong(const GpuBuffer&, int number, int numbers);

 private:
  cuda::Stream& streamOf(int gpu);
  std::uint64_t countIn(const GpuBuffer&, int number, int numbers, std::size_t from,
                        std::size_t count);

  std::map<int, std::unique_ptr<cuda::Stream>> streams_;
  cuda::PinnedMemory wrong_{sizeof(std::uint64_t)};
};

}  // namespace gradlink::measure

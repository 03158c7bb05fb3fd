// The GPUs of a store, each once, with what the store queues its work on.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "kvstore/gpu/key.h"
#include "kvstore/gpu/marks.h"
#include "kvstore/gpu/staging.h"

namespace gradlink {

/// Device memory for what one round computes on its way: given out piece by piece, all of it free
/// again at the next round. Work of one stream may use it without further ado, since rounds follow
/// one another there.
class GpuArena {
 public:
  explicit GpuArena(cuda::Device& device) : device_(device) {}

  /// 256-byte aligned.
  void* take(std::size_t bytes);
  void reset();

 private:
  cuda::Device& device_;
  std::vector<cuda::DeviceMemory> blocks_;
  std::size_t block_ = 0;
  std::size_t used_ = 0;  // of the present block
};

struct GpuPlace {
  explicit GpuPlace(cuda::Device& device)
      : device(device), stream(device), ring(stream), arena(device) {}

  cuda::Device& device;
  cuda::Stream stream;
  cuda::TaskRing ring;
  GpuArena arena;
  /// Bytes of the values that live here.
  std::size_t load = 0;
};

/// One array to another place, or from the host's memory or to it.
struct GpuCopy {
  GpuArray to;
  GpuArray from;
  std::size_t bytes;
};

class GpuPlaces {
 public:
  /// Makes streams, and, with `peer`, lets the GPUs reach one another where they can.
  explicit GpuPlaces(std::span<const int> gpus, bool peer = true);
  /// Before the first work: loads the sums of float32 and makes what copies pass through, which
  /// takes a while.
  void prepare();
  std::vector<cuda::Device*> devices() const;

  std::size_t size() const { return places_.size(); }
  GpuPlace& operator[](std::size_t index) { return *places_[index]; }
  /// kHostPlace where no place is that GPU.
  std::size_t indexOf(int ordinal) const;
  /// Whether kernels on `from` read and write memory of `to`.
  bool reaches(std::size_t from, std::size_t to) const { return reach_[from * size() + to]; }
  /// The place with the fewest bytes, which takes these too. From any thread, as the next two.
  std::size_t chooseOwner(std::size_t bytes);
  /// That place takes them, or gives them up.
  void takeOwner(std::size_t place, std::size_t bytes);
  void leaveOwner(std::size_t place, std::size_t bytes);

  /// Begins when that place's stream has done what it has to do now, and ends before what it gets
  /// from here on. In no order among themselves.
  void copy(std::size_t on, std::span<const GpuCopy> copies);
  GpuEvents& events() { return events_; }
  /// Waits for all streams, whatever became of their work; false where one does not end.
  bool quiesce() noexcept;

 private:
  bool isStaged(const GpuCopy& copy) const;

  const cuda::PeersInUse peersInUse_;
  std::vector<std::unique_ptr<GpuPlace>> places_;
  std::vector<bool> reach_;
  /// Guards what the places carry.
  std::mutex loads_;
  GpuEvents events_;
  /// Null where all reach all.
  std::unique_ptr<GpuStaging> staging_;
};

}  // namespace gradlink

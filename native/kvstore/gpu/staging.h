// Copies between GPUs that do not reach each other: through page-locked memory of the host, in
// pieces, so that one goes up while the next comes down. The driver's own staging would hold the
// calling thread up until the stream has come to the copy (places.h); here nothing but events
// orders the pieces, and the caller only queues.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/deadline.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "kvstore/gpu/key.h"
#include "kvstore/gpu/marks.h"

namespace gradlink {

/// One array to others of its size, all on other places than it.
struct GpuSpread {
  GpuArray from;
  std::vector<GpuArray> to;
  std::size_t bytes;
};

class GpuStaging {
 public:
  /// One device a place.
  GpuStaging(GpuEvents& events, std::span<cuda::Device* const> devices);
  ~GpuStaging();
  GpuStaging(const GpuStaging&) = delete;
  GpuStaging& operator=(const GpuStaging&) = delete;

  /// Begins when `stream` has done what it has to do now, and ends before what it gets from here
  /// on. Copies of one call are in no order among themselves.
  void copy(cuda::Stream& stream, std::span<const GpuSpread> spreads);
  /// Waits for all of it, whatever became of it; false where something does not end.
  bool quiesce(Deadline deadline) noexcept;

 private:
  /// What has read a piece of page-locked memory when it is past.
  struct Reader {
    cuda::Device* device;
    std::unique_ptr<cuda::Event> past;
  };
  /// Page-locked memory that pieces are in, or on their way into.
  struct Piece {
    std::size_t begin;
    std::size_t end;
    std::vector<Reader> readers;
  };
  /// One place: a stream for each direction, so that both copy engines are busy, and the memory
  /// that what comes down from it passes through, used in turn.
  struct Lane {
    explicit Lane(cuda::Device& device);
    cuda::Device& device;
    cuda::Stream down;
    cuda::Stream up;
    cuda::PinnedMemory memory;
    std::size_t next = 0;
    /// Oldest first.
    std::deque<Piece> pieces;
  };

  void copy(const GpuSpread& spread);
  std::byte* reserve(Lane& lane, std::size_t bytes);
  void forgetOldest(Lane& lane);

  GpuEvents& events_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace gradlink

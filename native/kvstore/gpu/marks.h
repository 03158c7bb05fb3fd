// Marks in streams: how the store knows that devices are past what it queued.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/deadline.h"
#include "cuda/stream.h"

namespace gradlink {

/// Events that are used again. Of one thread.
class GpuEvents {
 public:
  std::unique_ptr<cuda::Event> record(cuda::Stream& stream);
  void giveBack(cuda::Device& device, std::unique_ptr<cuda::Event> event);

 private:
  std::map<int, std::vector<std::unique_ptr<cuda::Event>>> spare_;
};

/// Marks in several streams that are waited for together.
class GpuMarks {
 public:
  /// `timeoutMs`: how long the devices may take from the first mark on.
  GpuMarks(GpuEvents& events, double timeoutMs) : events_(events), timeoutMs_(timeoutMs) {}
  ~GpuMarks() { clear(); }
  GpuMarks(const GpuMarks&) = delete;
  GpuMarks& operator=(const GpuMarks&) = delete;

  void add(cuda::Stream& stream);
  /// True when the devices are past all of them. Throws what a device failed with, or
  /// Error(timeout) that names the GPU.
  bool passed();
  /// What this stream gets from here on comes after all of them.
  void holdUp(cuda::Stream& stream);
  void clear();

 private:
  struct Mark {
    cuda::Stream* stream;
    std::unique_ptr<cuda::Event> event;
  };
  GpuEvents& events_;
  const double timeoutMs_;
  Deadline deadline_;
  std::vector<Mark> marks_;
};

/// What is under way ends within this, or never.
inline constexpr double kEndingMs = 2000;

/// Waits until a stream does nothing any more, whatever became of its work. False where that is not
/// so by the deadline.
bool quiesce(cuda::Stream& stream, Deadline deadline) noexcept;

}  // namespace gradlink

// Marks in streams: how the store knows that devices are past what it queued.
#pragma once

#include <map>
#include <memory>
#include <vector>

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
  explicit GpuMarks(GpuEvents& events) : events_(events) {}
  ~GpuMarks() { clear(); }
  GpuMarks(const GpuMarks&) = delete;
  GpuMarks& operator=(const GpuMarks&) = delete;

  void add(cuda::Stream& stream) { marks_.push_back({&stream, events_.record(stream)}); }
  /// True when the devices are past all of them. Throws what a device failed with.
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
  std::vector<Mark> marks_;
};

/// Waits for a stream, whatever became of its work.
void quiesce(cuda::Stream& stream) noexcept;

}  // namespace gradlink

// A thread and a stream for each GPU, for copies that JavaScript requests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "binding/environment.h"
#include "core/work_queue.h"
#include "cuda/stream.h"

namespace gradlink::binding {

/// Created and destroyed on the JavaScript thread.
class GpuQueue final : public Resident {
 public:
  GpuQueue(Environment&, cuda::Device&);
  ~GpuQueue() override;

  WorkQueue& queue() { return queue_; }
  /// Calls `launch`, which queues work on the stream, and waits for the device; the work's memory
  /// must stay until then. On the queue's thread only. `what` is for messages.
  void run(const char* what, const std::function<void(cuda::Stream&)>& launch);

  /// Drops queued work. Awaits a running copy: it uses memory of the environment.
  void abandon() override { abandoned_ = true; }
  void join() override { queue_.drain(); }

 private:
  Environment& environment_;
  cuda::Device& device_;
  cuda::Stream stream_;
  std::atomic<bool> abandoned_ = false;
  WorkQueue queue_;  // last, so destroyed first: its thread uses the rest
};

/// Those of one environment.
class GpuQueues {
 public:
  explicit GpuQueues(Environment& environment) : environment_(environment) {}
  /// Created at the first use of the device.
  GpuQueue& of(cuda::Device&);

 private:
  Environment& environment_;
  std::map<int, std::unique_ptr<GpuQueue>> queues_;
};

}  // namespace gradlink::binding

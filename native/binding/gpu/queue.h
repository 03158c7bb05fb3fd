// Copies to, from and between GPUs that JavaScript asks for: a thread and a stream for each GPU.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "binding/environment.h"
#include "core/work_queue.h"
#include "cuda/stream.h"

namespace gradlink::binding {

/// Made and destroyed on the JavaScript thread.
class GpuQueue final : public Resident {
 public:
  GpuQueue(Environment&, cuda::Device&);
  ~GpuQueue() override;

  WorkQueue& queue() { return queue_; }
  /// From the queue's thread only. Calls `launch`, which queues work on the stream, and returns
  /// when the device has done it; what it reads and writes must stay until then. `what` is for
  /// messages.
  void run(const char* what, const std::function<void(cuda::Stream&)>& launch);

  /// What has not begun does not begin any more. A copy that runs is waited for: it uses memory
  /// that goes with the environment, and it waits for no peer.
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
  /// Made at the first use of the device.
  GpuQueue& of(cuda::Device&);

 private:
  Environment& environment_;
  std::map<int, std::unique_ptr<GpuQueue>> queues_;
};

}  // namespace gradlink::binding

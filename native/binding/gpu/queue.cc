#include "binding/gpu/queue.h"

#include <string>

#include "core/error.h"

namespace gradlink::binding {

GpuQueue::GpuQueue(Environment& environment, cuda::Device& device)
    : environment_(environment), device_(device), stream_(device) {
  environment_.add(this);
}

GpuQueue::~GpuQueue() {
  environment_.remove(this);
  queue_.drain();
}

void GpuQueue::run(const char* what, const std::function<void(cuda::Stream&)>& launch) {
  if (abandoned_) throw Error(ErrorCode::closed, std::string(what) + ": the environment is ending");
  device_.makeCurrent();
  launch(stream_);
  stream_.synchronize();
}

GpuQueue& GpuQueues::of(cuda::Device& device) {
  std::unique_ptr<GpuQueue>& queue = queues_[device.ordinal()];
  if (!queue) queue = std::make_unique<GpuQueue>(environment_, device);
  return *queue;
}

}  // namespace gradlink::binding

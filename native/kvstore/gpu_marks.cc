#include "kvstore/gpu_marks.h"

#include <utility>

#include "core/error.h"

namespace gradlink {

std::unique_ptr<cuda::Event> GpuEvents::record(cuda::Stream& stream) {
  auto& spare = spare_[stream.device().ordinal()];
  std::unique_ptr<cuda::Event> event;
  if (spare.empty()) {
    event = std::make_unique<cuda::Event>(stream.device(), false);
  } else {
    event = std::move(spare.back());
    spare.pop_back();
  }
  event->record(stream);
  return event;
}

void GpuEvents::giveBack(cuda::Device& device, std::unique_ptr<cuda::Event> event) {
  spare_[device.ordinal()].push_back(std::move(event));
}

bool GpuMarks::passed() {
  while (!marks_.empty()) {
    Mark& mark = marks_.back();
    if (!mark.event->done()) return false;
    events_.giveBack(mark.stream->device(), std::move(mark.event));
    marks_.pop_back();
  }
  return true;
}

void GpuMarks::holdUp(cuda::Stream& stream) {
  for (const Mark& mark : marks_) {
    if (mark.stream != &stream) stream.wait(*mark.event);
  }
}

void GpuMarks::clear() {
  for (Mark& mark : marks_) events_.giveBack(mark.stream->device(), std::move(mark.event));
  marks_.clear();
}

void quiesce(cuda::Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // What failed is reported to whoever waits for the work; here it only must not be running.
  }
}

}  // namespace gradlink

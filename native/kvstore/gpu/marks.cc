#include "kvstore/gpu/marks.h"

#include <cmath>
#include <string>
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

void GpuMarks::add(cuda::Stream& stream) {
  if (marks_.empty()) deadline_ = Deadline::in(timeoutMs_);
  marks_.push_back({&stream, events_.record(stream)});
}

bool GpuMarks::passed() {
  while (!marks_.empty()) {
    Mark& mark = marks_.back();
    if (!mark.event->done()) {
      if (!deadline_.passed()) return false;
      throw Error(ErrorCode::timeout, "what a store has to do on " + mark.stream->device().label() +
                                          " did not end within " +
                                          std::to_string(std::lround(timeoutMs_)) + " ms");
    }
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

bool quiesce(cuda::Stream& stream, Deadline deadline) noexcept {
  try {
    cuda::await([&] { return stream.done(); }, deadline, "a store's work");
  } catch (const Error& error) {
    // What else failed is reported to whoever waits for the work; here it only must not be running.
    return error.code != ErrorCode::timeout;
  }
  return true;
}

}  // namespace gradlink

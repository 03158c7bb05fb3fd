// Streams, events and host functions; and what the fake NCCL asks (control.h).
#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

#include "cuda/capture.h"
#include "cuda/control.h"
#include "cuda/cost.h"
#include "cuda/exports.h"
#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

constexpr unsigned kDisableTiming = 2;
/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD stand for the null stream too.
constexpr std::uintptr_t kLastSpecialStream = 2;

/// Queries of a stream that is captured would ask for what has not run.
Status checkNotCaptured(Stream& stream) {
  const Stream::Captured captured = stream.captured();
  if (!captured.capture) return kOk;
  captured.capture->invalidate();
  return kCaptureUnsupported;
}

/// The event's last recording: null when it was never recorded.
Status markOf(EventHandle handle, std::shared_ptr<Event>* event, std::shared_ptr<Mark>* mark) {
  *event = World::get().events.find(handle);
  if (!*event) return kInvalidHandle;
  if (const Status status = checkUnsafeCall()) return status;
  const std::lock_guard lock((*event)->mutex);
  if ((*event)->capture) return kCapturedEvent;
  *mark = (*event)->mark;
  return kOk;
}

}  // namespace

std::shared_ptr<Stream> streamOf(StreamHandle handle) {
  if (reinterpret_cast<std::uintptr_t>(handle) > kLastSpecialStream) {
    return World::get().streams.find(handle);
  }
  return currentContext() ? currentContext()->nullStream() : nullptr;
}

FAKE_IN_CONTEXT(cuStreamCreate, (StreamHandle * stream, unsigned flags)) {
  if (flags > 1) return kInvalidValue;
  try {
    *stream = World::get().streams.add(context.startStream());
  } catch (const std::system_error&) {
    return kOutOfMemory;
  }
  return kOk;
}

FAKE_DRIVER(cuStreamDestroy_v2, (StreamHandle handle)) {
  const std::shared_ptr<Stream> stream = World::get().streams.take(handle);
  if (!stream) return kInvalidHandle;
  stream->close();
  return kOk;
}

FAKE_DRIVER(cuStreamSynchronize, (StreamHandle handle)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream) return kInvalidHandle;
  if (const Status status = checkNotCaptured(*stream)) return status;
  hostReached(stream->end()->wait());
  return stream->context().status();
}

FAKE_DRIVER(cuStreamQuery, (StreamHandle handle)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream) return kInvalidHandle;
  if (const Status status = checkNotCaptured(*stream)) return status;
  if (const Status status = stream->context().status()) return status;
  return stream->idle() ? kOk : kNotReady;
}

FAKE_DRIVER(cuStreamWaitEvent, (StreamHandle handle, EventHandle eventHandle, unsigned)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  const std::shared_ptr<Event> event = World::get().events.find(eventHandle);
  if (!stream || !event) return kInvalidHandle;
  stream->countQueued();
  const Stream::Captured captured = stream->captured();
  const std::lock_guard lock(event->mutex);
  if (event->capture) {
    if (event->capture->ended()) return kCapturedEvent;
    if (captured.capture && captured.capture != event->capture) return kCaptureMerge;
    // A stream that waits for captured work is captured from there on.
    const std::size_t lane =
        captured.capture ? captured.lane : event->capture->addLane(stream->context());
    if (!captured.capture) stream->capture({.capture = event->capture, .lane = lane});
    return event->capture->wait(lane, event->captured);
  }
  if (!event->mark) return kOk;
  if (captured.capture) {
    captured.capture->invalidate();
    return kCaptureIsolation;
  }
  stream->waitFor(event->mark);
  return kOk;
}

FAKE_IN_CONTEXT(cuEventCreate, (EventHandle * handle, unsigned flags)) {
  auto event = std::make_shared<Event>();
  event->context = &context;
  event->timed = (flags & kDisableTiming) == 0;
  *handle = World::get().events.add(std::move(event));
  return kOk;
}

FAKE_DRIVER(cuEventRecord, (EventHandle eventHandle, StreamHandle handle)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  const std::shared_ptr<Event> event = World::get().events.find(eventHandle);
  if (!stream || !event || &stream->context() != event->context) return kInvalidHandle;
  stream->countQueued();
  const Stream::Captured captured = stream->captured();
  const std::lock_guard lock(event->mutex);
  if (captured.capture) {
    event->capture = captured.capture;
    event->mark = nullptr;
    return captured.capture->record(captured.lane, &event->captured);
  }
  event->capture = nullptr;
  event->mark = stream->end();
  return kOk;
}

FAKE_DRIVER(cuEventQuery, (EventHandle handle)) {
  std::shared_ptr<Event> event;
  std::shared_ptr<Mark> mark;
  if (const Status status = markOf(handle, &event, &mark)) return status;
  if (const Status status = event->context->status()) return status;
  if (!mark) return kOk;
  if (!mark->done()) return kNotReady;
  hostReached(mark->time());
  return kOk;
}

FAKE_DRIVER(cuEventElapsedTime, (float* milliseconds, EventHandle from, EventHandle to)) {
  std::shared_ptr<Event> first;
  std::shared_ptr<Event> second;
  std::shared_ptr<Mark> begin;
  std::shared_ptr<Mark> end;
  if (const Status status = markOf(from, &first, &begin)) return status;
  if (const Status status = markOf(to, &second, &end)) return status;
  if (!begin || !end || !first->timed || !second->timed) return kInvalidHandle;
  if (first->context != second->context) return kInvalidHandle;
  if (const Status status = first->context->status()) return status;
  if (!begin->done() || !end->done()) return kNotReady;
  *milliseconds = static_cast<float>((end->time() - begin->time()) * 1e3);
  return kOk;
}

FAKE_DRIVER(cuEventDestroy_v2, (EventHandle handle)) {
  return World::get().events.take(handle) ? kOk : kInvalidHandle;
}

FAKE_DRIVER(cuLaunchHostFunc, (StreamHandle handle, void (*function)(void*), void* data)) {
  const std::shared_ptr<Stream> stream = streamOf(handle);
  if (!stream || !function) return stream ? kInvalidValue : kInvalidHandle;
  return submit(*stream, [function, data](Execution& execution) -> Status {
    const HostFunctionScope scope(execution);
    function(data);
    return kOk;
  });
}

}  // namespace gradlink::fake

using gradlink::fake::HostFunctionScope;

#define FAKE_CONTROL extern "C" __attribute__((visibility("default")))

FAKE_CONTROL int gradlinkFakeOwner(const void* address) {
  using gradlink::fake::Memory;
  return Memory::get()
      .placeOf(gradlink::cuda::addressOf(address), 1)
      .value_or(gradlink::fake::kPageable);
}

FAKE_CONTROL double gradlinkFakeLinkRate(int from, int to) {
  return gradlink::fake::linkRate(from, to);
}

FAKE_CONTROL int gradlinkFakeCanReach(int from, int to) {
  return gradlink::fake::Machine::get().canReach(from, to) ? 1 : 0;
}

FAKE_CONTROL double gradlinkFakeNow() {
  const auto* execution = HostFunctionScope::current();
  return execution ? execution->now : 0;
}

FAKE_CONTROL void gradlinkFakeAdvanceTo(double seconds) {
  auto* execution = HostFunctionScope::current();
  if (execution) execution->now = std::max(execution->now, seconds);
}

FAKE_CONTROL int gradlinkFakeDeviceOf(gradlink::cuda::StreamHandle stream) {
  const auto found = gradlink::fake::streamOf(stream);
  return found ? found->context().device() : -1;
}

FAKE_CONTROL int gradlinkFakeIsCapturing(gradlink::cuda::StreamHandle stream) {
  const auto found = gradlink::fake::streamOf(stream);
  return found && found->captured().capture ? 1 : 0;
}

FAKE_CONTROL std::uint64_t gradlinkFakeQueued(gradlink::cuda::StreamHandle stream) {
  if (!stream) return gradlink::fake::Stream::queuedOnAll();
  const auto found = gradlink::fake::streamOf(stream);
  return found ? found->queued() : 0;
}

FAKE_CONTROL void gradlinkFakeMap(int from, int to) {
  auto& contexts = gradlink::fake::World::get().contexts;
  if (from != to && gradlink::fake::Machine::get().canReach(from, to)) contexts[from]->map(to);
}

FAKE_CONTROL int gradlinkFakeFreeing() { return gradlink::fake::waitingForUsers(); }

FAKE_CONTROL int gradlinkFakeCurrentDevice() {
  const auto* context = gradlink::fake::currentContext();
  return context ? context->device() : -1;
}

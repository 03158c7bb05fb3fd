// Capture and graphs.
#include <system_error>
#include <utility>

#include "cuda/capture.h"
#include "cuda/exports.h"

namespace gradlink::fake {

FAKE_DRIVER(cuStreamBeginCapture_v2, (StreamHandle handle, int mode)) {
  if (mode < 0 || mode > static_cast<int>(Capture::Mode::relaxed)) return kInvalidValue;
  // The null stream cannot be captured.
  const std::shared_ptr<Stream> stream = World::get().streams.find(handle);
  if (!stream) return handle ? kInvalidHandle : kCaptureUnsupported;
  if (stream->captured().capture) return kCaptureUnsupported;
  if (const Status status = stream->context().status()) return status;
  auto capture = std::make_shared<Capture>(static_cast<Capture::Mode>(mode), stream->context());
  stream->capture({.capture = std::move(capture), .lane = 0});
  return kOk;
}

FAKE_DRIVER(cuStreamEndCapture, (StreamHandle handle, GraphHandle* result)) {
  const std::shared_ptr<Stream> stream = World::get().streams.find(handle);
  if (!stream) return kInvalidHandle;
  const Stream::Captured captured = stream->captured();
  *result = nullptr;
  if (!captured.capture) return kInvalidValue;
  if (captured.lane != 0) return kCaptureUnmatched;
  if (captured.capture->mode() != Capture::Mode::relaxed && !captured.capture->byThisThread()) {
    return kCaptureWrongThread;
  }
  std::shared_ptr<Graph> graph;
  const Status status = captured.capture->end(&graph);
  stream->capture({});
  if (graph) *result = World::get().graphs.add(std::move(graph));
  return status;
}

FAKE_DRIVER(cuGraphInstantiateWithFlags,
            (GraphExecHandle * result, GraphHandle handle, unsigned long long)) {
  std::shared_ptr<Graph> graph = World::get().graphs.find(handle);
  if (!graph) return kInvalidValue;
  auto exec = std::make_shared<GraphExec>(std::move(graph));
  try {
    exec->prepare();
  } catch (const std::system_error&) {
    return kOutOfMemory;
  }
  *result = World::get().graphExecs.add(std::move(exec));
  return kOk;
}

FAKE_DRIVER(cuGraphLaunch, (GraphExecHandle handle, StreamHandle streamHandle)) {
  const std::shared_ptr<GraphExec> exec = World::get().graphExecs.find(handle);
  const std::shared_ptr<Stream> stream = streamOf(streamHandle);
  if (!exec) return kInvalidValue;
  if (!stream) return kInvalidHandle;
  // A graph inside a graph would be a child node, which nobody here has use for.
  if (stream->captured().capture) return kNotSupported;
  if (const Status status = stream->context().status()) return status;
  stream->countQueued();
  exec->launch(*stream);
  return kOk;
}

FAKE_DRIVER(cuGraphExecDestroy, (GraphExecHandle handle)) {
  return World::get().graphExecs.take(handle) ? kOk : kInvalidValue;
}

FAKE_DRIVER(cuGraphDestroy, (GraphHandle handle)) {
  return World::get().graphs.take(handle) ? kOk : kInvalidValue;
}

}  // namespace gradlink::fake

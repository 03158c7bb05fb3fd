#include "cuda/capture.h"

#include <algorithm>
#include <set>
#include <shared_mutex>
#include <utility>

namespace gradlink::fake {
namespace {

/// Captures under way.
struct Captures {
  std::mutex mutex;
  std::set<Capture*> captures;
  static Captures& get() {
    static Captures& captures = *new Captures;
    return captures;
  }
};

}  // namespace

Capture::Capture(Mode mode, Context& context) : mode_(mode), thread_(std::this_thread::get_id()) {
  addLane(context);
  Captures& captures = Captures::get();
  const std::lock_guard lock(captures.mutex);
  captures.captures.insert(this);
}

Capture::~Capture() {
  Captures& captures = Captures::get();
  const std::lock_guard lock(captures.mutex);
  captures.captures.erase(this);
}

void Capture::invalidate() {
  const std::lock_guard lock(mutex_);
  valid_ = false;
}

bool Capture::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::size_t Capture::addLane(Context& context) {
  const std::lock_guard lock(mutex_);
  graph_->lanes.push_back(&context);
  clocks_.emplace_back();
  return clocks_.size() - 1;
}

void Capture::merge(Clock& into, const Clock& from) {
  into.resize(std::max(into.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

Status Capture::addNode(Graph::Node node) {
  if (!valid_) return kCaptureInvalidated;
  if (node.work) {
    Clock& clock = clocks_[node.lane];
    clock.resize(std::max(clock.size(), node.lane + 1));
    ++clock[node.lane];
  }
  graph_->nodes.push_back(std::move(node));
  return kOk;
}

Status Capture::add(std::size_t lane, Work work) {
  const std::lock_guard lock(mutex_);
  return addNode({.lane = lane, .work = std::move(work)});
}

Status Capture::record(std::size_t lane, std::size_t* event) {
  const std::lock_guard lock(mutex_);
  *event = graph_->events++;
  const Status status = addNode({.lane = lane, .work = nullptr, .records = true, .event = *event});
  eventClocks_.push_back(clocks_[lane]);
  return status;
}

Status Capture::wait(std::size_t lane, std::size_t event) {
  const std::lock_guard lock(mutex_);
  merge(clocks_[lane], eventClocks_[event]);
  return addNode({.lane = lane, .work = nullptr, .records = false, .event = event});
}

Status Capture::end(std::shared_ptr<Graph>* graph) {
  {
    // Events that were recorded in it may hold it for longer; it forbids nothing any more.
    Captures& captures = Captures::get();
    const std::lock_guard lock(captures.mutex);
    captures.captures.erase(this);
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (!valid_) return kCaptureInvalidated;
  Clock first = clocks_[0];
  first.resize(clocks_.size());
  for (std::size_t lane = 1; lane < clocks_.size(); ++lane) {
    if (clocks_[lane].size() > lane && first[lane] < clocks_[lane][lane]) return kCaptureUnjoined;
  }
  *graph = graph_;
  return kOk;
}

Status submit(Stream& stream, Work work) {
  if (const Status status = stream.context().status()) return status;
  stream.countQueued();
  const Stream::Captured captured = stream.captured();
  if (captured.capture) return captured.capture->add(captured.lane, std::move(work));
  const std::shared_lock lock(stream.context().launches());
  stream.push(std::move(work));
  return kOk;
}

Status checkUnsafeCall() {
  Captures& captures = Captures::get();
  const std::lock_guard lock(captures.mutex);
  Status status = kOk;
  for (Capture* capture : captures.captures) {
    const bool forbids = capture->mode() == Capture::Mode::global ||
                         (capture->mode() == Capture::Mode::threadLocal && capture->byThisThread());
    if (!forbids) continue;
    capture->invalidate();
    status = kCaptureUnsupported;
  }
  return status;
}

GraphExec::GraphExec(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}

void GraphExec::prepare() {
  for (std::size_t lane = 1; lane < graph_->lanes.size(); ++lane) {
    streams_.push_back(graph_->lanes[lane]->startStream());
  }
}

GraphExec::~GraphExec() {
  for (const std::shared_ptr<Stream>& stream : streams_) stream->close();
}

void GraphExec::launch(Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto laneStream = [&](std::size_t lane) -> Stream& {
    return lane == 0 ? stream : *streams_[lane - 1];
  };
  // A graph never runs beside itself.
  if (last_) stream.waitFor(last_);
  // Other lanes begin with a wait for an event that comes, in the end, of the first.
  std::vector<std::shared_ptr<Mark>> marks(graph_->events);
  for (std::shared_ptr<Mark>& mark : marks) mark = std::make_shared<Mark>();
  for (const Graph::Node& node : graph_->nodes) {
    if (node.work) {
      laneStream(node.lane).push(node.work);
    } else if (node.records) {
      laneStream(node.lane).record(marks[node.event]);
    } else {
      laneStream(node.lane).waitFor(marks[node.event]);
    }
  }
  last_ = stream.end();
}

}  // namespace gradlink::fake

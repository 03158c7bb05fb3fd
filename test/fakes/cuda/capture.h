// Graphs: work that streams queued while they were captured, and its replay.
//
// A captured stream becomes a lane: a sequence of nodes. Events that were recorded and waited for
// order the lanes. A replay queues each lane on a stream of its own (the first on the stream the
// graph is launched on), so that lanes run beside each other as the streams did: what waits for a
// peer in one lane does not hold up the peer in another.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/context.h"

namespace gradlink::fake {

class Graph {
 public:
  struct Node {
    std::size_t lane;
    Work work;  // of no work: an event is recorded (or waited for)
    bool records = false;
    std::size_t event = 0;
  };
  std::vector<Node> nodes;
  std::vector<Context*> lanes;
  std::size_t events = 0;
};

/// A graph while it is made. One lock for all of a capture: several threads may queue.
class Capture {
 public:
  enum class Mode : int { global = 0, threadLocal = 1, relaxed = 2 };

  Capture(Mode mode, Context& context);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Mode mode() const { return mode_; }
  bool byThisThread() const { return thread_ == std::this_thread::get_id(); }
  void invalidate();
  bool ended();

  Status add(std::size_t lane, Work work);
  Status record(std::size_t lane, std::size_t* event);
  Status wait(std::size_t lane, std::size_t event);
  std::size_t addLane(Context& context);
  /// kCaptureUnjoined where the first lane does not come after all the others.
  Status end(std::shared_ptr<Graph>* graph);

 private:
  /// How far each lane is known to be done.
  using Clock = std::vector<std::size_t>;
  static void merge(Clock& into, const Clock& from);
  Status addNode(Graph::Node node);

  const Mode mode_;
  const std::thread::id thread_;
  std::mutex mutex_;
  bool valid_ = true;
  bool ended_ = false;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Clock> clocks_;       // by lane
  std::vector<Clock> eventClocks_;  // by event
};

/// An event of the driver: what it was recorded as last.
struct Event {
  Context* context = nullptr;
  bool timed = true;
  /// Who waits for it sleeps.
  std::mutex mutex;
  std::shared_ptr<Mark> mark;
  /// Recorded in a stream that is being captured.
  std::shared_ptr<Capture> capture;
  std::size_t captured = 0;
};

/// Queues work on a stream, or adds it to the graph that the stream is captured for.
Status submit(Stream& stream, Work work);

/// Whether the calling thread may do what is unsafe during a capture (allocate, free, ask events):
/// not while one in global mode is under way anywhere, or one in thread-local mode on this thread.
/// Invalidates such captures, as the driver does.
Status checkUnsafeCall();

class GraphExec {
 public:
  explicit GraphExec(std::shared_ptr<const Graph> graph);
  ~GraphExec();
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;
  /// Starts the lanes' streams.
  void prepare();
  /// Queues a replay.
  void launch(Stream& stream);

 private:
  std::shared_ptr<const Graph> graph_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;  // of the lanes but the first
  std::shared_ptr<Mark> last_;                    // the end of the replay before
};

}  // namespace gradlink::fake

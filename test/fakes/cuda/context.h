// Primary contexts, and the handles that the driver has given out.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cuda/status.h"
#include "cuda/stream.h"
#include "support/handles.h"

namespace gradlink::fake {

/// A GPU's primary context. Lives as long as the process.
class Context {
 public:
  explicit Context(int device) : device_(device) {}

  int device() const { return device_; }
  /// The first time takes some of the GPU's memory, and fails where the faults say so:
  /// "retain=214@1", "exclusive=FILE", "prohibited=1".
  Status retain();
  /// The first failure of its work: sticky, as a real context is lost after one.
  Status status() const { return status_.load(); }
  void fail(Status status);

  bool reaches(int device) const { return device == device_ || (peers_ >> device & 1) != 0; }
  void enable(int device) { peers_ |= 1u << device; }
  void disable(int device) { peers_ &= ~(1u << device); }
  /// What NCCL has mapped of another GPU: no access for others, but a free there waits for this
  /// one.
  void map(int device) { mapped_ |= 1u << device; }
  bool maps(int device) const { return reaches(device) || (mapped_ >> device & 1) != 0; }
  int enabled() const { return std::popcount(peers_.load()); }

  /// The null stream: one like others here, which does not wait for the rest.
  std::shared_ptr<Stream> nullStream();
  /// Streams that may have work, destroyed ones too.
  std::shared_ptr<Stream> startStream();
  /// Waits for all work that is queued now.
  void synchronize();
  /// Held to queue work; by a free, alone.
  std::shared_mutex& launches() { return launches_; }
  /// For the next stream; null where each has one of its own.
  HardwareQueue* nextQueue();

 private:
  const int device_;
  std::atomic<Status> status_{kOk};
  std::atomic<unsigned> peers_{0};
  std::atomic<unsigned> mapped_{0};
  std::shared_mutex launches_;
  std::mutex mutex_;
  bool retained_ = false;
  std::vector<std::unique_ptr<HardwareQueue>> queues_;
  std::size_t started_ = 0;
  std::shared_ptr<Stream> null_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

struct Event;
class Graph;
class GraphExec;
struct Module;
struct Function;

/// All of the process. Never destroyed: threads of streams run until the process is gone.
struct World {
  static World& get();

  std::atomic<bool> initialized{false};
  std::vector<std::unique_ptr<Context>> contexts;
  Handles<Stream, StreamHandle> streams;
  Handles<Event, EventHandle> events;
  Handles<Graph, GraphHandle> graphs;
  Handles<GraphExec, GraphExecHandle> graphExecs;
  Handles<Module, ModuleHandle> modules;
  Handles<Function, FunctionHandle> functions;

 private:
  World();
};

/// What every function of the driver checks first: cuInit was called, and not from within a
/// function that cuLaunchHostFunc runs.
Status enter();
/// That, and that the thread has a current context which has not failed.
Status enter(Context*& current);

/// The calling thread's.
Context* currentContext();
void setCurrentContext(Context* context);
Context* contextOf(ContextHandle handle);
inline ContextHandle handleOf(Context* context) { return reinterpret_cast<ContextHandle>(context); }

/// As the driver: what is freed is in nobody's use. Waits for the contexts that reach the memory of
/// a GPU, of all for the host's, and lets none of them queue anything meanwhile.
void waitForUsers(int place);
/// Threads that are in there.
int waitingForUsers();

/// While one lives, its thread is inside a host function of a stream.
class HostFunctionScope {
 public:
  explicit HostFunctionScope(Execution& execution);
  ~HostFunctionScope();
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
  /// Null outside.
  static Execution* current();
};

}  // namespace gradlink::fake

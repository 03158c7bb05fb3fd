// The addon's state in one JavaScript environment (main thread or worker): the way back to its
// thread, and everything to end before it ends. No JavaScript references are static: every
// environment has its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "binding/napi_setup.h"

namespace gradlink::binding {

class PendingOp;

/// An object with threads that must end before its environment.
class Resident {
 public:
  virtual ~Resident() = default;
  /// Makes all blocking calls of its threads return soon. Called for all residents before any is
  /// joined, because they may wait for each other (ranks of one local group).
  virtual void abandon() = 0;
  /// Returns when its threads have ended. Nothing may be started afterwards.
  virtual void join() = 0;
};

class Environment : public std::enable_shared_from_this<Environment> {
 public:
  using Task = std::function<void(Napi::Env)>;

  /// Creates the environment's instance data, once, when the addon is loaded.
  static void install(Napi::Env);
  static Environment& of(Napi::Env);

  explicit Environment(Napi::Env);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // ---- from any thread

  /// Runs the task on the JavaScript thread soon; one wake-up runs several. Returns false, and
  /// drops the task here, if the environment is ending: the task must hold no JavaScript reference.
  bool post(Task task);
  /// Runs the task on the JavaScript thread and waits. Returns false if the environment is ending
  /// and the task did not run. Not on the JavaScript thread. The task must not throw.
  bool call(const Task& task);

  /// Releases memory that residents' threads may use: soon, or at the teardown after their end.
  void retire(std::shared_ptr<void> memory);

  // ---- on the JavaScript thread

  /// Between the first hold and the last release the process (or worker) does not exit by itself.
  void hold();
  void release();

  /// Residents remove themselves when destroyed; after the teardown both do nothing.
  void add(Resident*);
  void remove(Resident*);

  /// Takes ownership; the operation lives until it is settled or until the teardown.
  void adopt(std::unique_ptr<PendingOp>);
  void discard(PendingOp*);

  /// The state of one area of the addon, from its first use until all residents' threads have
  /// ended.
  template <class Area>
  Area& area() {
    std::shared_ptr<void>& slot = areas_[typeid(Area)];
    if (!slot) slot = std::make_shared<Area>(*this);
    return *static_cast<Area*>(slot.get());
  }

  bool closing() const;

  /// Constructors of wrapped classes, by name, for native code that creates such objects.
  void setConstructor(const std::string& name, Napi::Function);
  Napi::Function constructor(const std::string& name) const;

  /// The class GradlinkError from lib/native/load.ts. Initially empty.
  void setErrorClass(Napi::Function);
  Napi::FunctionReference& errorClass() { return errorClass_; }

 private:
  static void onWake(napi_env, napi_value, void* context, void*);
  void drain(Napi::Env);
  void teardown();

  mutable std::mutex mutex_;
  std::condition_variable called_;
  std::vector<Task> tasks_;
  bool wakeScheduled_ = false;
  /// Threads that are waking the JavaScript thread.
  std::atomic<int> waking_{0};
  bool closing_ = false;
  bool ended_ = false;
  std::vector<std::shared_ptr<void>> retired_;

  napi_env env_;
  napi_threadsafe_function wake_ = nullptr;
  std::size_t holds_ = 0;

  // The teardown's order: residents' threads, operations (whose memory those threads used), what
  // ran the operations, the references for settling them.
  std::unordered_set<Resident*> residents_;
  std::unordered_map<PendingOp*, std::unique_ptr<PendingOp>> operations_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> areas_;
  std::unordered_map<std::string, Napi::FunctionReference> constructors_;
  Napi::FunctionReference errorClass_;
};

}  // namespace gradlink::binding

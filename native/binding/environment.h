// What one JavaScript environment (the main thread or a worker thread) has of this addon: the way
// back to its thread, what it must wait for, and what must be ended before it may go. There are no
// JavaScript references in statics anywhere: every environment has its own.
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

/// Something with threads of its own that an environment must end before it goes.
class Resident {
 public:
  virtual ~Resident() = default;
  /// Makes every blocking call of its threads return soon. Called for all residents before any is
  /// joined, because one may be waiting for another (the ranks of one local group).
  virtual void abandon() = 0;
  /// Returns when its threads no longer run. Nothing may be started afterwards.
  virtual void join() = 0;
};

class Environment : public std::enable_shared_from_this<Environment> {
 public:
  using Task = std::function<void(Napi::Env)>;

  /// Makes the environment's instance data. Once, when the addon is loaded into it.
  static void install(Napi::Env);
  static Environment& of(Napi::Env);

  explicit Environment(Napi::Env);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // ---- from any thread

  /// Runs the task on the JavaScript thread soon; one wake-up runs all that have gathered. False:
  /// the environment is going and the task is dropped. The task may hold no JavaScript reference
  /// (it may be dropped right here).
  bool post(Task task);
  /// Runs the task on the JavaScript thread and waits for it. False: the environment is going and
  /// the task did not run. Never on the JavaScript thread. The task must not throw.
  bool call(const Task& task);

  /// Lets go of memory that threads of residents may use: soon, or in the teardown when they have
  /// ended.
  void retire(std::shared_ptr<void> memory);

  // ---- on the JavaScript thread

  /// Between the first hold and the last release the process (or worker) does not exit by itself.
  void hold();
  void release();

  /// Residents leave when they are destroyed; after the teardown both do nothing.
  void add(Resident*);
  void remove(Resident*);

  /// Takes the operation; it lives until settled or until the teardown.
  void adopt(std::unique_ptr<PendingOp>);
  void discard(PendingOp*);

  /// What an area of the addon keeps for this environment: made at its first use, destroyed at the
  /// teardown, when no resident's thread runs any more.
  template <class Area>
  Area& area() {
    std::shared_ptr<void>& slot = areas_[typeid(Area)];
    if (!slot) slot = std::make_shared<Area>(*this);
    return *static_cast<Area*>(slot.get());
  }

  /// True once the teardown has begun.
  bool closing() const;

  /// Constructors of wrapped classes, by name, for native code that makes such objects.
  void setConstructor(const std::string& name, Napi::Function);
  Napi::Function constructor(const std::string& name) const;

  /// The class GradlinkError, handed over by lib/native/load.ts. Empty before.
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
  /// No thread of a resident runs any more.
  bool ended_ = false;
  std::vector<std::shared_ptr<void>> retired_;

  napi_env env_;
  napi_threadsafe_function wake_ = nullptr;
  std::size_t holds_ = 0;

  // The teardown empties these in the order: residents' threads, then operations (whose memory
  // those threads used), then what operations were run by, then the references that settling an
  // operation needs.
  std::unordered_set<Resident*> residents_;
  std::unordered_map<PendingOp*, std::unique_ptr<PendingOp>> operations_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> areas_;
  std::unordered_map<std::string, Napi::FunctionReference> constructors_;
  Napi::FunctionReference errorClass_;
};

}  // namespace gradlink::binding

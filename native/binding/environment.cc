#include "binding/environment.h"

#include <thread>
#include <utility>

#include "binding/pending_op.h"

namespace gradlink::binding {

namespace {

/// Instance data shares ownership: everything with threads keeps the Environment alive, so the
/// order of Node's finalizers does not matter.
struct InstanceData {
  std::shared_ptr<Environment> environment;
};

}  // namespace

void Environment::install(Napi::Env env) {
  auto data = std::make_unique<InstanceData>();
  data->environment = std::make_shared<Environment>(env);
  env.SetInstanceData(data.release());
}

Environment& Environment::of(Napi::Env env) {
  return *env.GetInstanceData<InstanceData>()->environment;
}

Environment::Environment(Napi::Env env) : env_(env) {
  const Napi::String name = Napi::String::New(env, "gradlink");
  napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr,
                                                       nullptr, this, onWake, &wake_);
  if (status == napi_ok) status = napi_unref_threadsafe_function(env, wake_);
  // Hooks run in reverse order: this one runs before the thread-safe function's own.
  if (status == napi_ok) {
    status = napi_add_env_cleanup_hook(
        env, [](void* self) { static_cast<Environment*>(self)->teardown(); }, this);
  }
  if (status != napi_ok) throw Napi::Error::New(env, "gradlink: cannot set up this environment");
}

Environment::~Environment() = default;

bool Environment::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return false;
    tasks_.push_back(std::move(task));
    if (wakeScheduled_) return true;
    wakeScheduled_ = true;
    waking_.fetch_add(1, std::memory_order_relaxed);
  }
  // Outside the lock, which would block the woken thread at once.
  napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
  waking_.fetch_sub(1, std::memory_order_release);
  return true;
}

void Environment::retire(std::shared_ptr<void> memory) {
  if (post([memory](Napi::Env) {})) return;
  std::lock_guard lock(mutex_);
  if (!ended_) retired_.push_back(std::move(memory));
}

bool Environment::call(const Task& task) {
  // Shared: a caller released at the teardown leaves the posted half behind.
  struct Call {
    Task task;
    bool done = false;
  };
  auto call = std::make_shared<Call>(Call{task});
  const bool posted = post([this, call](Napi::Env env) {
    call->task(env);
    {
      std::lock_guard lock(mutex_);
      call->done = true;
    }
    called_.notify_all();
  });
  if (!posted) return false;
  std::unique_lock lock(mutex_);
  called_.wait(lock, [&] { return call->done || closing_; });
  return call->done;
}

void Environment::onWake(napi_env env, napi_value, void* context, void*) {
  // Node passes a null environment for calls still queued when it closes the function.
  if (env == nullptr) return;
  static_cast<Environment*>(context)->drain(Napi::Env(env));
}

void Environment::drain(Napi::Env env) {
  std::vector<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    wakeScheduled_ = false;
  }
  for (Task& task : tasks) {
    Napi::HandleScope scope(env);
    try {
      task(env);
    } catch (const Napi::Error& error) {
      // An exception in a thread-safe function becomes 'uncaughtException'. It is raised in a
      // separate task, so the rest is still settled.
      error.ThrowAsJavaScriptException();
      if (&task != &tasks.back()) {
        std::lock_guard lock(mutex_);
        if (closing_) return;
        tasks_.insert(tasks_.begin(), std::make_move_iterator(&task + 1),
                      std::make_move_iterator(tasks.data() + tasks.size()));
        if (!wakeScheduled_) {
          wakeScheduled_ = true;
          napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
        }
      }
      return;
    }
  }
}

void Environment::hold() {
  if (holds_++ == 0 && !closing()) napi_ref_threadsafe_function(env_, wake_);
}

void Environment::release() {
  if (--holds_ == 0 && !closing()) napi_unref_threadsafe_function(env_, wake_);
}

void Environment::add(Resident* resident) {
  if (!closing()) residents_.insert(resident);
}

void Environment::remove(Resident* resident) { residents_.erase(resident); }

void Environment::adopt(std::unique_ptr<PendingOp> operation) {
  PendingOp* key = operation.get();
  operations_.emplace(key, std::move(operation));
}

void Environment::discard(PendingOp* operation) { operations_.erase(operation); }

bool Environment::closing() const {
  std::lock_guard lock(mutex_);
  return closing_;
}

void Environment::setConstructor(const std::string& name, Napi::Function constructor) {
  constructors_[name] = Napi::Persistent(constructor);
}

Napi::Function Environment::constructor(const std::string& name) const {
  return constructors_.at(name).Value();
}

void Environment::setErrorClass(Napi::Function errorClass) {
  errorClass_ = Napi::Persistent(errorClass);
}

void Environment::teardown() {
  std::vector<Task> dropped;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(tasks_);
  }
  called_.notify_all();
  // From here on no thread uses the thread-safe function.
  while (waking_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  for (Resident* resident : residents_) resident->abandon();
  for (Resident* resident : residents_) resident->join();
  residents_.clear();
  operations_.clear();
  // From here on nothing uses the memory that dropped tasks were to release.
  dropped.clear();
  std::vector<std::shared_ptr<void>> retired;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    retired.swap(retired_);
  }
  retired.clear();
  areas_.clear();
  constructors_.clear();
  errorClass_.Reset();
}

}  // namespace gradlink::binding

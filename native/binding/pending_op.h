// An operation on our own threads that JavaScript awaits. Never libuv's pool: its four threads
// would deadlock with five ranks that wait for each other.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "binding/environment.h"
#include "binding/napi_setup.h"
#include "core/work_queue.h"

namespace gradlink::binding {

/// A JavaScript value whose memory an operation uses.
struct KeptValue {
  // NOLINTNEXTLINE(google-explicit-constructor): most values are nothing but their reference.
  KeptValue(Napi::ObjectReference object, std::shared_ptr<void> memory = nullptr)
      : object(std::move(object)), memory(std::move(memory)) {}

  Napi::ObjectReference object;
  /// The memory of a DeviceBuffer that may be disposed, or of a transferable ArrayBuffer.
  std::shared_ptr<void> memory;
};
/// Kept until the operation is settled.
using Kept = std::vector<KeptValue>;

/// Appends a reference unless the value is null or undefined.
void keep(Kept&, const Napi::Value&);

class PendingOp {
 public:
  using Work = std::function<void()>;
  using Finish = std::function<Napi::Value(Napi::Env)>;

  /// Runs `work` on the queue's thread (throws to reject), then `finish` on the JavaScript thread,
  /// whose result the promise resolves to (empty: undefined; may throw). `work` may hold no
  /// JavaScript reference and must not own the queue.
  static Napi::Promise start(Napi::Env, WorkQueue&, Work, Finish = {}, Kept = {});

  /// The last operation of a queue: `ended` runs on the JavaScript thread after the queue's thread
  /// has ended, even if `work` failed. An error of `work` rejects.
  static Napi::Promise startLast(Napi::Env, WorkQueue&, Work, Finish ended, Kept = {});

  /// For engines with their own threads: complete() must follow once. Keeps the process alive.
  static PendingOp& create(Napi::Env, Finish = {}, Kept = {});
  Napi::Promise promise() const { return deferred_.Promise(); }
  /// Resolves for null, else rejects with the error. Thread-safe; never throws.
  void complete(std::exception_ptr error);

  ~PendingOp();
  PendingOp(const PendingOp&) = delete;
  PendingOp& operator=(const PendingOp&) = delete;

 private:
  PendingOp(Napi::Env, Finish, Kept);
  void settle(Napi::Env, const std::exception_ptr&);

  Environment& environment_;
  Napi::Promise::Deferred deferred_;
  Finish finish_;
  Kept kept_;
};

}  // namespace gradlink::binding

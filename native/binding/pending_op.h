// An operation on a thread of ours that JavaScript awaits. libuv's pool is never used: its four
// threads would deadlock as soon as five ranks wait for each other.
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
  /// What a DeviceBuffer frees at its dispose(), and what goes with an ArrayBuffer that is
  /// transferred, unless somebody still holds it.
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

  /// The usual way: `work` runs on the queue's thread (it throws to reject), then `finish` on the
  /// JavaScript thread gives what the promise resolves to (undefined when empty; it may throw too).
  /// `work` may hold no JavaScript reference and must not own the queue.
  static Napi::Promise start(Napi::Env, WorkQueue&, Work, Finish = {}, Kept = {});

  /// The last operation of a queue: `ended` runs on the JavaScript thread however `work` went, when
  /// the queue's thread has ended. What `work` throws rejects.
  static Napi::Promise startLast(Napi::Env, WorkQueue&, Work, Finish ended, Kept = {});

  /// For engines with their own threads: makes the operation; complete() must follow exactly once.
  /// Keeps the process alive until then.
  static PendingOp& create(Napi::Env, Finish = {}, Kept = {});
  Napi::Promise promise() const { return deferred_.Promise(); }
  /// From any thread. Null resolves; else rejects with that error's JavaScript form. Never throws.
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

#include "binding/pending_op.h"

#include <memory>
#include <utility>

#include "binding/backing_store.h"
#include "binding/errors.h"
#include "binding/gpu/buffer.h"

namespace gradlink::binding {

void keep(Kept& kept, const Napi::Value& value) {
  if (!value.IsObject()) return;
  std::shared_ptr<void> memory = memoryUnder(value);
  if (memory == nullptr) {
    const DeviceBufferWrap* buffer = DeviceBufferWrap::of(value);
    if (buffer != nullptr) memory = buffer->hold();
  }
  kept.emplace_back(Napi::Persistent(value.As<Napi::Object>()), std::move(memory));
}

PendingOp::PendingOp(Napi::Env env, Finish finish, Kept kept)
    : environment_(Environment::of(env)),
      deferred_(env),
      finish_(std::move(finish)),
      kept_(std::move(kept)) {
  environment_.hold();
}

PendingOp::~PendingOp() { environment_.release(); }

PendingOp& PendingOp::create(Napi::Env env, Finish finish, Kept kept) {
  std::unique_ptr<PendingOp> made(new PendingOp(env, std::move(finish), std::move(kept)));
  PendingOp& operation = *made;
  operation.environment_.adopt(std::move(made));
  return operation;
}

Napi::Promise PendingOp::start(Napi::Env env, WorkQueue& queue, Work work, Finish finish,
                               Kept kept) {
  PendingOp& operation = create(env, std::move(finish), std::move(kept));
  const Napi::Promise promise = operation.promise();
  try {
    queue.post([&operation, work = std::move(work)] {
      std::exception_ptr error;
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      operation.complete(error);
    });
  } catch (...) {
    // The queue's thread could not start: nothing else would settle the operation.
    operation.settle(env, std::current_exception());
  }
  return promise;
}

Napi::Promise PendingOp::startLast(Napi::Env env, WorkQueue& queue, Work work, Finish ended,
                                   Kept kept) {
  const auto failed = std::make_shared<std::exception_ptr>();
  return start(
      env, queue,
      [work = std::move(work), failed] {
        try {
          work();
        } catch (...) {
          *failed = std::current_exception();
        }
      },
      [&queue, ended = std::move(ended), failed](Napi::Env at) -> Napi::Value {
        queue.drain();
        Napi::Value result = ended(at);
        if (*failed) std::rethrow_exception(*failed);
        return result;
      },
      std::move(kept));
}

void PendingOp::complete(std::exception_ptr error) {
  // If the environment is ending, the teardown destroys the operation unsettled and unseen.
  environment_.post([this, error = std::move(error)](Napi::Env env) { settle(env, error); });
}

void PendingOp::settle(Napi::Env env, const std::exception_ptr& error) {
  if (error) {
    deferred_.Reject(toJavaScript(env, error));
  } else {
    try {
      deferred_.Resolve(finish_ ? finish_(env) : env.Undefined());
    } catch (...) {
      deferred_.Reject(toJavaScript(env, std::current_exception()));
    }
  }
  environment_.discard(this);
}

}  // namespace gradlink::binding

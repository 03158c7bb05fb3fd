#include "binding/store/handle.h"

#include <string>
#include <utility>

#include "binding/errors.h"
#include "binding/store/updater_call.h"
#include "kvstore/base/misuse.h"

namespace gradlink::binding {

class KVStoreHandle::ScriptUpdater final : public ExternalUpdater {
 public:
  ScriptUpdater(KVStoreHandle& handle, std::uint32_t function)
      : handle_(handle), function_(function) {}

  void update(const UpdateRequest& request, std::function<void(std::exception_ptr)> done) override {
    handle_.environment_->post([this, request, done = std::move(done)](Napi::Env env) {
      std::exception_ptr error;
      try {
        handle_.callUpdater(env, function_, request);
      } catch (const Napi::Error& thrown) {
        // Only its text: the last copy of the error may be destroyed on another thread, where no
        // JavaScript reference may be.
        error = std::make_exception_ptr(storeMisuse("the updater failed: " + thrown.Message()));
      } catch (...) {
        error = std::current_exception();
      }
      done(error);
    });
  }

 private:
  KVStoreHandle& handle_;
  const std::uint32_t function_;
};

KVStoreHandle::KVStoreHandle(Napi::Env env, std::unique_ptr<Store> store, Kind kind)
    : environment_(Environment::of(env).shared_from_this()),
      env_(env),
      kind_(kind),
      store_(std::move(store)) {
  environment_->add(this);
}

KVStoreHandle::~KVStoreHandle() {
  environment_->remove(this);
  close();
}

Store& KVStoreHandle::open() {
  if (closed_) throw Error(ErrorCode::closed, "the store was used after close()");
  return *store_;
}

void KVStoreHandle::close() {
  if (closed_) return;
  closed_ = true;
  store_->stop();
  store_.reset();
  functions_.clear();
  Napi::MemoryManagement::AdjustExternalMemory(env_, -accountedBytes_);
}

void KVStoreHandle::join() {
  queue_.drain();
  if (store_ && dropped_) store_->drop();
  if (store_) store_->stop();
  functions_.clear();
}

KeyId KVStoreHandle::define(const std::string& name, const KeyShape& shape) {
  const KeyId key = open().define(name, shape.dtype, shape.count, shape.rowLength);
  shapes_.emplace(key, shape);
  const auto bytes = static_cast<std::int64_t>(shape.count * sizeOf(shape.dtype));
  accountedBytes_ += bytes;
  Napi::MemoryManagement::AdjustExternalMemory(env_, bytes);
  return key;
}

const KeyShape& KVStoreHandle::shapeOf(KeyId key) const {
  const auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    throw argumentError(env_, "key", "the number of a defined key", std::to_string(key));
  }
  return found->second;
}

std::shared_ptr<ExternalUpdater> KVStoreHandle::updater(Napi::Function function) {
  const auto number = static_cast<std::uint32_t>(functions_.size());
  functions_.emplace(number, Napi::Persistent(function));
  return std::make_shared<ScriptUpdater>(*this, number);
}

void KVStoreHandle::callUpdater(Napi::Env env, std::uint32_t function,
                                const UpdateRequest& request) {
  runUpdater(env, functions_.at(function), Napi::Number::New(env, request.key),
             {request.dtype, request.count, request.received, request.stored});
}

}  // namespace gradlink::binding

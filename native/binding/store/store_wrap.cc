#include "binding/store/store_wrap.h"

#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/store/args.h"
#include "binding/store/call.h"
#include "binding/store/optimizer_spec.h"
#include "kvstore/base/compression.h"
#include "kvstore/gpu/gpu_store.h"
#include "kvstore/local/local_store.h"

namespace gradlink::binding {

namespace {

constexpr const char* kStoreClass = "NativeKVStore";

struct Made {
  std::unique_ptr<Store> store;
  KVStoreHandle::Kind kind;
};

/// Joins the end of an operation with the promise for it: either may come first.
class EndOrPromise {
 public:
  /// Thread-safe.
  void end(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (pending_ != nullptr) return pending_->complete(std::move(error));
    ended_ = true;
    error_ = std::move(error);
  }

  /// True if the operation has ended; throws its error. Else `make` creates the end's receiver.
  template <typename Make>
  bool endedOr(Make make) {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      pending_ = &make();
      return false;
    }
    if (error_) std::rethrow_exception(error_);
    return true;
  }

 private:
  std::mutex mutex_;
  PendingOp* pending_ = nullptr;
  bool ended_ = false;
  std::exception_ptr error_;
};

}  // namespace

void exportKVStore(Napi::Env env, Napi::Object exports) { KVStoreWrap::define(env, exports); }

void KVStoreWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = KVStoreWrap;
  const Napi::Function constructor =
      DefineClass(env, kStoreClass,
                  {StaticMethod<&Wrap::onGpus>("onGpus"),
                   StaticMethod<&Wrap::openDist>("openDist"),
                   StaticMethod<&Wrap::openAllreduce>("openAllreduce"),
                   InstanceMethod<&Wrap::defineKey>("define"),
                   InstanceMethod<&Wrap::submit>("submit"),
                   InstanceMethod<&Wrap::prepare>("prepare"),
                   InstanceMethod<&Wrap::submitPrepared>("submitPrepared"),
                   InstanceMethod<&Wrap::rowSparsePull>("rowSparsePull"),
                   InstanceMethod<&Wrap::pushRows>("pushRows"),
                   InstanceMethod<&Wrap::setOptimizer>("setOptimizer"),
                   InstanceMethod<&Wrap::setLearningRate>("setLearningRate"),
                   InstanceMethod<&Wrap::setUpdater>("setUpdater"),
                   InstanceMethod<&Wrap::setCompression>("setCompression"),
                   InstanceMethod<&Wrap::barrier>("barrier"),
                   InstanceMethod<&Wrap::saveStates>("saveStates"),
                   InstanceMethod<&Wrap::loadStates>("loadStates"),
                   InstanceMethod<&Wrap::close>("close"),
                   InstanceMethod<&Wrap::allocShared>("allocShared"),
                   InstanceMethod<&Wrap::leave>("leave"),
                   InstanceMethod<&Wrap::command>("command"),
                   InstanceMethod<&Wrap::deadNodes>("deadNodes"),
                   InstanceMethod<&Wrap::look>("look"),
                   InstanceMethod<&Wrap::placement>("placement"),
                   InstanceMethod<&Wrap::workerReport>("workerReport"),
                   InstanceMethod<&Wrap::serverReports>("serverReports"),
                   InstanceMethod<&Wrap::drop>("drop")});
  StoreCallWrap::define(env);
  Environment::of(env).setConstructor(kStoreClass, constructor);
  exports.Set(kStoreClass, constructor);
}

Napi::Value KVStoreWrap::onGpus(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    GpuStoreOptions options;
    options.gpus = gpusArg(info[0]);
    options.merge = static_cast<GpuMerge>(integerArg(info[1], "merge", 0, 3));
    options.timeoutMs = numberArg(info[2], "timeoutMs");
    options.peer = booleanArg(info[3], "peer");
    if (!info[4].IsUndefined()) {
      options.shardOptimizer = booleanArg(info[4], "shardOptimizer");
    }
    return make(env, makeGpuStore(options), KVStoreHandle::Kind::gpus);
  });
}

Napi::Value KVStoreWrap::make(Napi::Env env, std::unique_ptr<Store> store,
                              KVStoreHandle::Kind kind) {
  Made made{std::move(store), kind};
  return Environment::of(env).constructor(kStoreClass).New({Napi::External<Made>::New(env, &made)});
}

KVStoreWrap::KVStoreWrap(const Napi::CallbackInfo& info) : Napi::ObjectWrap<KVStoreWrap>(info) {
  guarded(info.Env(), [&] {
    if (info[0].IsExternal()) {  // from make
      Made& made = *info[0].As<Napi::External<Made>>().Data();
      handle_ = std::make_shared<KVStoreHandle>(info.Env(), std::move(made.store), made.kind);
      return;
    }
    const auto placement = static_cast<Placement>(integerArg(info[0], "placement", 0, 1));
    const auto devices =
        static_cast<std::size_t>(integerArg(info[1], "devices", 1, kMaxStoreDevices));
    handle_ = std::make_shared<KVStoreHandle>(
        info.Env(), std::make_unique<LocalStore>(placement, devices), KVStoreHandle::Kind::host);
  });
}

Napi::Value KVStoreWrap::defineKey(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::string name = stringArg(info[0], "name");
    const KeyShape shape{dtypeArg(info[1]), countArg(info[2], "count"),
                         countArg(info[3], "rowLength")};
    const KeyId key = handle_->define(name, shape);
    return Napi::Number::New(info.Env(), key);
  });
}

Napi::Value KVStoreWrap::await(const Napi::CallbackInfo& info,
                               const std::function<void(Kept&)>& keepMore,
                               const std::function<void(std::shared_ptr<Ticket>)>& begin,
                               PendingOp::Finish finish) {
  const auto rendezvous = std::make_shared<EndOrPromise>();
  begin(std::make_shared<Ticket>(
      [rendezvous](std::exception_ptr error) { rendezvous->end(std::move(error)); }));
  Napi::Promise promise;
  const bool ended = rendezvous->endedOr([&]() -> PendingOp& {
    Kept kept;
    keep(kept, info.This());
    if (keepMore) keepMore(kept);
    PendingOp& pending = PendingOp::create(info.Env(), finish, std::move(kept));
    promise = pending.promise();
    return pending;
  });
  if (!ended) return promise;
  return finish ? finish(info.Env()) : info.Env().Undefined();
}

Napi::Value KVStoreWrap::await(const Napi::CallbackInfo& info,
                               const std::function<void(Kept&)>& keepMore,
                               std::vector<Operation> operations, bool here) {
  if (operations.empty()) return info.Env().Undefined();
  Store& store = handle_->open();
  return await(info, keepMore, [&](const std::shared_ptr<Ticket>& ticket) {
    for (Operation& operation : operations) operation.ticket = ticket;
    store.submit(std::move(operations), here);
  });
}

Napi::Value KVStoreWrap::submit(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto keepLists = [&](Kept& kept) {
      keepArrays(info[2], kept);
      keepArrays(info[3], kept);
    };
    return await(info, keepLists, operationsArg(info, *handle_), booleanArg(info[5], "here"));
  });
}

Napi::Value KVStoreWrap::prepare(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    return StoreCallWrap::make(info.Env(), handle_, store.prepare(operationsArg(info, *handle_)),
                               {info[2], info[3]});
  });
}

Napi::Value KVStoreWrap::submitPrepared(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    StoreCallWrap& call = StoreCallWrap::of(info[0], handle_);
    const std::int32_t priority = priorityArg(info[1]);
    std::shared_ptr<void> memory = call.hold();
    handle_->open();
    const auto keepMemory = [&](Kept& kept) {
      kept.emplace_back(Napi::Persistent(call.Value()), std::move(memory));
    };
    return await(info, keepMemory,
                 [&](const std::shared_ptr<Ticket>& ticket) { call.submit(priority, ticket); });
  });
}

Napi::Value KVStoreWrap::rowSparsePull(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return await(
        info, [&](Kept& kept) { keepArrays(info[1], kept); }, rowOperationsArg(info, *handle_),
        booleanArg(info[5], "here"));
  });
}

Napi::Value KVStoreWrap::pushRows(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    std::vector<Operation> operations;
    operations.push_back(rowPushArg(info, *handle_));
    return await(
        info, [&](Kept& kept) { keepArrays(info[1], kept); }, std::move(operations),
        booleanArg(info[4], "here"));
  });
}

Napi::Value KVStoreWrap::setOptimizer(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    handle_->open().setOptimizer(info[0].IsNull() ? nullptr
                                                  : Optimizer::create(optimizerSpecArg(info[0])));
    return info.Env().Undefined();
  });
}

Napi::Value KVStoreWrap::setLearningRate(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    const double value = numberArg(info[0], "learningRate");
    return await(info, nullptr,
                 [&](auto ticket) { store.setLearningRate(value, std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::setUpdater(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Store& store = handle_->open();
    store.setUpdater(info[0].IsNull() ? nullptr
                                      : handle_->updater(functionArg(info[0], "updater")));
    return info.Env().Undefined();
  });
}

Napi::Value KVStoreWrap::setCompression(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    handle_->open().setCompression(
        GradientCompression::create(stringArg(info[0], "type"), numberArg(info[1], "threshold")));
    return info.Env().Undefined();
  });
}

Napi::Value KVStoreWrap::barrier(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    return await(info, nullptr, [&](auto ticket) { store.barrier(std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::saveStates(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    const std::string file = stringArg(info[0], "file");
    const bool dump = booleanArg(info[1], "dumpOptimizer");
    return await(info, nullptr,
                 [&](auto ticket) { store.saveStates(file, dump, std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::loadStates(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    const std::string file = stringArg(info[0], "file");
    return await(info, nullptr, [&](auto ticket) { store.loadStates(file, std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::close(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    if (!handle_->waitsForOthers()) {
      handle_->close();
      return info.Env().Undefined();
    }
    Kept kept;
    keep(kept, info.This());
    return PendingOp::startLast(
        info.Env(), handle_->queue(), [raw = handle_.get()] { raw->stop(); },
        [raw = handle_.get()](Napi::Env env) -> Napi::Value {
          raw->close();
          return env.Undefined();
        },
        std::move(kept));
  });
}

}  // namespace gradlink::binding

// What only stores of several workers can do: methods of NativeKVStore.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/external_memory.h"
#include "binding/store/store_wrap.h"
#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/base/misuse.h"
#include "kvstore/worker/dist_store.h"

namespace gradlink::binding {

namespace {

Error needsServers(const std::string& what) {
  return storeUnsupported(what + " needs a store with servers: dist_sync or dist_async");
}

DistStore& withServers(Store& store, const std::string& what) {
  auto* const dist = dynamic_cast<DistStore*>(&store);
  if (dist == nullptr) throw needsServers(what);
  return *dist;
}

Napi::Array numbersOf(Napi::Env env, const std::vector<std::uint64_t>& numbers) {
  const Napi::Array list = Napi::Array::New(env, numbers.size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    list.Set(i, Napi::Number::New(env, static_cast<double>(numbers[i])));
  }
  return list;
}

/// Memory of allocShared while an ArrayBuffer shows it, also after the store was closed.
class SharedMemory {
 public:
  /// No memory where the store has none such.
  SharedMemory(std::shared_ptr<Store> store, std::size_t bytes)
      : store_(std::move(store)),
        dist_(dynamic_cast<DistStore*>(store_.get())),
        data_(dist_ == nullptr ? nullptr : dist_->allocShared(bytes)) {}
  ~SharedMemory() {
    if (data_ != nullptr) dist_->freeShared(data_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::shared_ptr<Store> store_;
  DistStore* dist_;
  void* data_;
};

}  // namespace

Napi::Value KVStoreWrap::allocShared(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    handle_->open();
    const std::size_t bytes = std::max<std::size_t>(countArg(info[0], "bytes"), 1);
    auto memory = std::make_shared<SharedMemory>(handle_->share(), bytes);
    void* const data = memory->data();
    if (data == nullptr) return env.Null();
    return arrayBufferOver(env, std::move(memory), data, bytes, "allocShared");
  });
}

Napi::Value KVStoreWrap::leave(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    return await(info, nullptr, [&](std::shared_ptr<Ticket> ticket) {
      if (auto* const sums = dynamic_cast<AllreduceStore*>(&store)) {
        sums->leave(std::move(ticket));
      } else {
        withServers(store, "leave").leave(std::move(ticket));
      }
    });
  });
}

Napi::Value KVStoreWrap::command(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    DistStore& store = withServers(handle_->open(), stringArg(info[1], "op"));
    const std::string text = stringArg(info[0], "command");
    return await(info, nullptr,
                 [&](std::shared_ptr<Ticket> ticket) { store.command(text, std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::deadNodes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const DistStore& store = withServers(handle_->open(), "numDeadNodes");
    return Napi::Number::New(info.Env(), store.deadNodes());
  });
}

Napi::Value KVStoreWrap::look(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    return Napi::Boolean::New(info.Env(), withServers(handle_->open(), "look").look());
  });
}

Napi::Value KVStoreWrap::placement(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto places = withServers(handle_->open(), "placement").placement();
    const Napi::Array list = Napi::Array::New(env, places.size());
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      const Napi::HandleScope scope(env);
      const Napi::Object place = Napi::Object::New(env);
      place.Set("key", places[i].key);
      place.Set("server", places[i].server);
      place.Set("first", static_cast<double>(places[i].first));
      place.Set("count", static_cast<double>(places[i].count));
      list.Set(i, place);
    }
    return list;
  });
}

Napi::Value KVStoreWrap::workerReport(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    Store& store = handle_->open();
    const Napi::Object report = Napi::Object::New(env);
    if (const auto* const sums = dynamic_cast<AllreduceStore*>(&store)) {
      const AllreduceTimes times = sums->times();
      report.Set("copy", times.copy);
      report.Set("wait", times.wait);
      report.Set("reduce", times.reduce);
      report.Set("update", times.update);
      report.Set("bytesReduced", static_cast<double>(sums->bytesReduced()));
      return report;
    }
    const DistStore& dist = withServers(store, "report");
    const DistTimes times = dist.times();
    report.Set("copy", times.copy);
    report.Set("wait", times.wait);
    report.Set("bytesSent", numbersOf(env, dist.bytesSent()));
    report.Set("bytesReceived", numbersOf(env, dist.bytesReceived()));
    return report;
  });
}

Napi::Value KVStoreWrap::serverReports(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    DistStore& store = withServers(handle_->open(), "report");
    const auto texts = std::make_shared<std::vector<std::string>>();
    return await(
        info, nullptr,
        [&](std::shared_ptr<Ticket> ticket) { store.reports(texts, std::move(ticket)); },
        [texts](Napi::Env env) -> Napi::Value {
          const Napi::Array list = Napi::Array::New(env, texts->size());
          for (std::uint32_t i = 0; i < texts->size(); ++i) list.Set(i, (*texts)[i]);
          return list;
        });
  });
}

Napi::Value KVStoreWrap::drop(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    handle_->drop();
    return info.Env().Undefined();
  });
}

}  // namespace gradlink::binding

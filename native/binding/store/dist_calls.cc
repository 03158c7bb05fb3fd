// NativeKVStore's methods for stores with several workers.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/external_memory.h"
#include "binding/store/store_wrap.h"
#include "kvstore/store.h"

namespace gradlink::binding {

namespace {

Napi::Array numbersOf(Napi::Env env, const std::vector<std::uint64_t>& numbers) {
  const Napi::Array list = Napi::Array::New(env, numbers.size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    list.Set(i, Napi::Number::New(env, static_cast<double>(numbers[i])));
  }
  return list;
}

/// Memory of allocShared, kept by its ArrayBuffer beyond the store's close.
class SharedMemory {
 public:
  /// Null memory if the store has none to share.
  SharedMemory(std::shared_ptr<Store> store, std::size_t bytes)
      : store_(std::move(store)), data_(store_->allocShared(bytes)) {}
  ~SharedMemory() {
    if (data_ != nullptr) store_->freeShared(data_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::shared_ptr<Store> store_;
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
    return await(info, nullptr,
                 [&](std::shared_ptr<Ticket> ticket) { store.leave(std::move(ticket)); });
  });
}

Napi::Value KVStoreWrap::command(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Store& store = handle_->open();
    const std::string text = stringArg(info[0], "command");
    const std::string op = stringArg(info[1], "op");
    return await(info, nullptr, [&](std::shared_ptr<Ticket> ticket) {
      store.command(op, text, std::move(ticket));
    });
  });
}

Napi::Value KVStoreWrap::deadNodes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    return Napi::Number::New(info.Env(), handle_->open().deadNodes());
  });
}

Napi::Value KVStoreWrap::look(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    return Napi::Boolean::New(info.Env(), handle_->open().look());
  });
}

Napi::Value KVStoreWrap::placement(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto places = handle_->open().placement();
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
    const WorkerReport spent = handle_->open().report();
    const Napi::Object report = Napi::Object::New(env);
    report.Set("copy", spent.copy);
    report.Set("wait", spent.wait);
    if (spent.sums) {
      report.Set("reduce", spent.sums->reduce);
      report.Set("update", spent.sums->update);
      report.Set("bytesReduced", static_cast<double>(spent.sums->bytesReduced));
    } else {
      report.Set("bytesSent", numbersOf(env, spent.bytesSent));
      report.Set("bytesReceived", numbersOf(env, spent.bytesReceived));
    }
    return report;
  });
}

Napi::Value KVStoreWrap::serverReports(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Store& store = handle_->open();
    const auto texts = std::make_shared<std::vector<std::string>>();
    return await(
        info, nullptr,
        [&](std::shared_ptr<Ticket> ticket) { store.serverReports(texts, std::move(ticket)); },
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

#include "binding/store/call.h"

#include <utility>

#include "binding/args.h"
#include "binding/errors.h"

namespace gradlink::binding {

namespace {

constexpr const char* kStoreCallClass = "NativeStoreCall";

void collect(const Napi::Value& value, std::vector<DeviceBufferWrap*>& into) {
  if (!value.IsArray()) {
    DeviceBufferWrap* const buffer = DeviceBufferWrap::of(value);
    if (buffer != nullptr) into.push_back(buffer);
    return;
  }
  const auto list = value.As<Napi::Array>();
  const std::uint32_t length = list.Length();
  for (std::uint32_t i = 0; i < length; ++i) {
    const Napi::HandleScope scope(value.Env());
    collect(list.Get(i), into);
  }
}

}  // namespace

struct StoreCallWrap::Made {
  std::weak_ptr<KVStoreHandle> store;
  std::unique_ptr<PreparedCall> operations;
  const std::vector<Napi::Value>& lists;
};

void StoreCallWrap::define(Napi::Env env) {
  Environment::of(env).setConstructor(kStoreCallClass, DefineClass(env, kStoreCallClass, {}));
}

Napi::Object StoreCallWrap::make(Napi::Env env, const std::shared_ptr<KVStoreHandle>& store,
                                 std::unique_ptr<PreparedCall> operations,
                                 const std::vector<Napi::Value>& lists) {
  Made made{store, std::move(operations), lists};
  return Environment::of(env)
      .constructor(kStoreCallClass)
      .New({Napi::External<Made>::New(env, &made)});
}

StoreCallWrap& StoreCallWrap::of(const Napi::Value& value,
                                 const std::shared_ptr<KVStoreHandle>& store) {
  const Napi::Env env = value.Env();
  const Napi::Function constructor = Environment::of(env).constructor(kStoreCallClass);
  if (value.IsObject() && value.As<Napi::Object>().InstanceOf(constructor)) {
    StoreCallWrap& call = *Unwrap(value.As<Napi::Object>());
    if (call.store_.lock() == store) return call;
  }
  throw argumentError(env, "call", "a call that this store prepared", describe(value));
}

StoreCallWrap::StoreCallWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  if (!info[0].IsExternal()) {
    throw argumentError(info.Env(), kStoreCallClass, "a call of prepare", "new");
  }
  Made& made = *info[0].As<Napi::External<Made>>().Data();
  store_ = std::move(made.store);
  operations_ = std::move(made.operations);
  std::vector<DeviceBufferWrap*> buffers;
  for (const Napi::Value& list : made.lists) {
    if (!list.IsArray()) continue;
    collect(list, buffers);
    lists_.push_back(Napi::Persistent(list.As<Napi::Object>()));
  }
  buffers_.emplace(std::move(buffers));
}

std::shared_ptr<void> StoreCallWrap::hold() {
  std::shared_ptr<void> memory = buffers_->hold();
  if (memory) return memory;
  throw argumentError(Env(), "value", "a DeviceBuffer with memory", "a disposed one");
}

}  // namespace gradlink::binding

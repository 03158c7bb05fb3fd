#include "binding/store/call.h"

#include <exception>
#include <span>
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

/// The first slices are the smallest: each is under way while the next, of twice the bytes, is
/// made.
std::vector<std::size_t> endsOf(std::span<const Operation> operations, KVStoreHandle& handle) {
  std::size_t wanted = handle.open().sliceBytes();
  std::vector<std::size_t> ends;
  std::size_t bytes = 0;
  for (std::size_t i = 0; wanted != 0 && i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    const KeyShape& shape = handle.shapeOf(operation.key);
    bytes += (operation.in.size() + operation.out.size()) * shape.count * sizeOf(shape.dtype);
    if (bytes < wanted) continue;
    ends.push_back(i + 1);
    bytes = 0;
    wanted *= 2;
  }
  if (ends.empty() || ends.back() != operations.size()) ends.push_back(operations.size());
  return ends;
}

}  // namespace

struct StoreCallWrap::Made {
  std::weak_ptr<KVStoreHandle> store;
  std::vector<Operation> operations;
  const std::vector<Napi::Value>& lists;
};

void StoreCallWrap::define(Napi::Env env) {
  Environment::of(env).setConstructor(kStoreCallClass, DefineClass(env, kStoreCallClass, {}));
}

Napi::Object StoreCallWrap::make(Napi::Env env, const std::shared_ptr<KVStoreHandle>& store,
                                 std::vector<Operation> operations,
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
  ends_ = endsOf(operations_, *store_.lock());
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

void StoreCallWrap::submit(Store& store, std::int32_t priority,
                           const std::shared_ptr<Ticket>& ticket) const {
  // Not done before all slices are.
  ticket->expect();
  std::exception_ptr error;
  try {
    auto from = operations_.begin();
    for (const std::size_t end : ends_) {
      const auto to = operations_.begin() + static_cast<std::ptrdiff_t>(end);
      std::vector<Operation> slice(from, to);
      for (Operation& operation : slice) {
        operation.priority = priority;
        operation.ticket = ticket;
      }
      store.submit(std::move(slice));
      from = to;
    }
  } catch (...) {
    // What was submitted before uses the memory: the operation goes on until that is done.
    error = std::current_exception();
  }
  ticket->finish(std::move(error));
}

}  // namespace gradlink::binding

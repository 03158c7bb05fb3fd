#include "binding/backing_store.h"

#include <dlfcn.h>

#include "core/error.h"

namespace gradlink::binding {

namespace {

/// v8::ArrayBuffer::GetBackingStore, which Node-API lacks. A napi_value is a handle of V8's, and a
/// handle what `this` is to its methods. Both are so since Node 8, and Node exports the symbol.
/// The result is a std::shared_ptr<v8::BackingStore>; that to void has the same form, since what
/// lets go of it is in the block it points to.
using GetBackingStore = std::shared_ptr<void> (*)(napi_value);

/// Bun has another engine, and exports V8's name for a class of its own, which takes no napi_value.
bool isOfV8(Napi::Env env) {
  const Napi::Value process = env.Global().Get("process");
  if (!process.IsObject()) return true;
  const Napi::Value versions = process.As<Napi::Object>().Get("versions");
  return !versions.IsObject() || versions.As<Napi::Object>().Get("bun").IsUndefined();
}

/// Null on a runtime that has none.
GetBackingStore getBackingStore(Napi::Env env) {
  static const auto function = isOfV8(env)
                                   ? reinterpret_cast<GetBackingStore>(dlsym(
                                         RTLD_DEFAULT, "_ZN2v811ArrayBuffer15GetBackingStoreEv"))
                                   : nullptr;
  return function;
}

}  // namespace

std::shared_ptr<void> memoryUnder(const Napi::Value& value) {
  if (!value.IsTypedArray() && !value.IsArrayBuffer()) return nullptr;
  const Napi::Value buffer =
      value.IsArrayBuffer() ? value : value.As<Napi::TypedArray>().ArrayBuffer();
  // Of a SharedArrayBuffer, which nobody can transfer, the reference to the array is enough.
  if (!buffer.IsArrayBuffer()) return nullptr;
  const GetBackingStore get = getBackingStore(value.Env());
  if (get == nullptr) {
    throw Error(ErrorCode::unsupported,
                "this runtime cannot keep the memory of an array while an operation uses it: call "
                "the blocking twin (its name ends in Sync), or use Node.js");
  }
  return get(buffer);
}

}  // namespace gradlink::binding

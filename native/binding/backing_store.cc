#include "binding/backing_store.h"

#include <dlfcn.h>

#include "core/error.h"

namespace gradlink::binding {

namespace {

/// v8::ArrayBuffer::GetBackingStore, which Node-API lacks. A napi_value is a V8 handle, which is
/// what `this` is to its methods; this has been so since Node 8, and Node exports the symbol. The
/// result is a std::shared_ptr<v8::BackingStore>, whose layout equals that of one to void.
using GetBackingStore = std::shared_ptr<void> (*)(napi_value);

/// Bun has another engine and exports V8's name for an unrelated class.
bool isOfV8(Napi::Env env) {
  const Napi::Value process = env.Global().Get("process");
  if (!process.IsObject()) return true;
  const Napi::Value versions = process.As<Napi::Object>().Get("versions");
  return !versions.IsObject() || versions.As<Napi::Object>().Get("bun").IsUndefined();
}

/// Null if the runtime does not export it.
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
  // SharedArrayBuffers cannot be transferred, so a reference to the array suffices.
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

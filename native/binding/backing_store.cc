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

GetBackingStore getBackingStore() {
  static const auto function = reinterpret_cast<GetBackingStore>(
      dlsym(RTLD_DEFAULT, "_ZN2v811ArrayBuffer15GetBackingStoreEv"));
  return function;
}

}  // namespace

std::shared_ptr<void> memoryUnder(const Napi::Value& value) {
  if (!value.IsTypedArray() && !value.IsArrayBuffer()) return nullptr;
  const Napi::Value buffer =
      value.IsArrayBuffer() ? value : value.As<Napi::TypedArray>().ArrayBuffer();
  // Of a SharedArrayBuffer, which nobody can transfer, the reference to the array is enough.
  if (!buffer.IsArrayBuffer()) return nullptr;
  if (getBackingStore() == nullptr) {
    throw Error(ErrorCode::unsupported,
                "this runtime cannot keep the memory of an array while an operation uses it: call "
                "the blocking twin (its name ends in Sync), or use Node.js");
  }
  return getBackingStore()(buffer);
}

}  // namespace gradlink::binding

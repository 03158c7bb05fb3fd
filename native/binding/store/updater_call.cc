#include "binding/store/updater_call.h"

#include "binding/errors.h"
#include "core/kernels/copy_bytes.h"

namespace gradlink::binding {

namespace {

/// A TypedArray with a copy of `data`: a script may keep it while the store's memory changes.
Napi::Value copyOf(Napi::Env env, const UpdatedArrays& of, const void* data) {
  constexpr napi_typedarray_type kStorage[kDTypeCount] = {
      napi_int8_array,     napi_uint8_array,     napi_int32_array,  napi_uint32_array,
      napi_bigint64_array, napi_biguint64_array, napi_uint16_array, napi_uint16_array,
      napi_float32_array,  napi_float64_array,   napi_uint8_array,  napi_uint8_array,
      napi_int16_array};
  const std::size_t bytes = of.count * sizeOf(of.dtype);
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(env, bytes);
  copyBytes(buffer.Data(), data, bytes);
  napi_value array;
  if (napi_create_typedarray(env, kStorage[static_cast<int>(of.dtype)], of.count, buffer, 0,
                             &array) != napi_ok) {
    throw Napi::Error::New(env);
  }
  return Napi::Value(env, array);
}

}  // namespace

void runUpdater(Napi::Env env, const Napi::FunctionReference& function, Napi::Value key,
                const UpdatedArrays& arrays, const std::vector<Napi::Value>& more) {
  const Napi::Value received = copyOf(env, arrays, arrays.received);
  const Napi::Value stored = copyOf(env, arrays, arrays.stored);
  std::vector<napi_value> given{key, received, stored};
  given.insert(given.end(), more.begin(), more.end());
  function.Call(given);
  const auto array = stored.As<Napi::TypedArray>();
  const std::size_t bytes = arrays.count * sizeOf(arrays.dtype);
  // A detached array has length 0.
  if (array.ByteLength() != bytes) {
    throw argumentError(env, "stored", "an array that is not transferred", "a detached array");
  }
  const auto* data = static_cast<const std::byte*>(array.ArrayBuffer().Data());
  copyBytes(arrays.stored, data + array.ByteOffset(), bytes);
}

}  // namespace gradlink::binding

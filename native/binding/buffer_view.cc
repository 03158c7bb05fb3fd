#include "binding/buffer_view.h"

#include <cstdint>
#include <string>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/gpu/buffer.h"

namespace gradlink::binding {

namespace {

constexpr napi_typedarray_type kStorage[kDTypeCount] = {
    napi_int8_array,     napi_uint8_array,     napi_int32_array,  napi_uint32_array,
    napi_bigint64_array, napi_biguint64_array, napi_uint16_array, napi_uint16_array,
    napi_float32_array,  napi_float64_array,   napi_uint8_array,  napi_uint8_array,
    napi_int16_array};

constexpr const char* kStorageNames[kDTypeCount] = {
    "an Int8Array",     "a Uint8Array",  "an Int32Array", "a Uint32Array",  "a BigInt64Array",
    "a BigUint64Array", "a Uint16Array", "a Uint16Array", "a Float32Array", "a Float64Array",
    "a Uint8Array",     "a Uint8Array",  "an Int16Array"};

std::string got(const Napi::Value& value) {
  if (value.IsTypedArray()) return "a TypedArray of another type";
  const DeviceBufferWrap* buffer = DeviceBufferWrap::of(value);
  return buffer != nullptr ? buffer->description() : describe(value);
}

}  // namespace

BufferView viewOf(const Napi::Value& value, DType dtype, const char* name) {
  const napi_env env = value.Env();
  const int index = static_cast<int>(dtype);
  napi_typedarray_type type;
  BufferView view;
  napi_value buffer;
  // Plain C calls: in the 8-byte collective, wrapper objects would be noticeable.
  if (napi_get_typedarray_info(env, value, &type, &view.length, &view.data, &buffer, nullptr) !=
          napi_ok ||
      type != kStorage[index]) {
    throw argumentError(env, name, std::string(kStorageNames[index]) + " for " + nameOf(dtype),
                        got(value));
  }
  if (view.length == 0) {
    // A detached array has length 0, like an empty one.
    bool detached = false;
    if (napi_is_detached_arraybuffer(env, buffer, &detached) == napi_ok && detached) {
      throw argumentError(env, name, "an array with memory", "a detached one");
    }
  } else if (reinterpret_cast<std::uintptr_t>(view.data) % sizeOf(dtype) != 0) {
    throw argumentError(env, name, "memory aligned for " + std::string(nameOf(dtype)),
                        "misaligned memory");
  }
  return view;
}

BufferView viewOn(int device, const Napi::Value& value, DType dtype, const char* name) {
  if (device == kHost) return viewOf(value, dtype, name);
  const DeviceBufferWrap* buffer = DeviceBufferWrap::of(value);
  if (buffer == nullptr || buffer->device() != device || buffer->dtype() != dtype) {
    const std::string came = value.IsTypedArray() ? "a TypedArray" : got(value);
    throw argumentError(
        value.Env(), name,
        std::string("a DeviceBuffer of ") + nameOf(dtype) + " on gpu:" + std::to_string(device),
        came);
  }
  if (buffer->disposed()) {
    throw argumentError(value.Env(), name, "a DeviceBuffer with memory", "a disposed one");
  }
  return {buffer->data(), buffer->length(), device};
}

BufferView viewOfAny(const Napi::Value& value, DType dtype, const char* name) {
  const DeviceBufferWrap* buffer = value.IsTypedArray() ? nullptr : DeviceBufferWrap::of(value);
  return viewOn(buffer != nullptr ? buffer->device() : kHost, value, dtype, name);
}

void* memoryOf(const Napi::Value& value, DType dtype, std::size_t length, const char* name,
               int device) {
  const BufferView view = viewOn(device, value, dtype, name);
  if (view.length < length) {
    throw argumentError(value.Env(), name, "at least " + std::to_string(length) + " elements",
                        std::to_string(view.length));
  }
  return view.data;
}

std::vector<int> ranksArg(const Napi::Value& value, const char* name, int size) {
  const BufferView view = viewOf(value, DType::int32, name);
  const auto* first = static_cast<const std::int32_t*>(view.data);
  std::vector<int> ranks(first, first + view.length);
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size) {
      throw argumentError(value.Env(), name, "ranks below " + std::to_string(size),
                          std::to_string(rank));
    }
  }
  return ranks;
}

DType dtypeArg(const Napi::Value& value) {
  const auto dtype = static_cast<DType>(integerArg(value, "dtype", 0, kDTypeCount - 1));
  if (isFloat8(dtype)) {
    throw argumentError(value.Env(), "dtype", "a type of the host", nameOf(dtype));
  }
  return dtype;
}

DType gpuDTypeArg(const Napi::Value& value) {
  return static_cast<DType>(integerArg(value, "dtype", 0, kGpuDTypeCount - 1));
}

}  // namespace gradlink::binding

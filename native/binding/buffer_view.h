// The checked memory of a TypedArray or a NativeDeviceBuffer.
#pragma once

#include <cstddef>
#include <vector>

#include "binding/napi_setup.h"
#include "core/kernels/dtype.h"

namespace gradlink::binding {

/// The device of a TypedArray; a NativeDeviceBuffer's is its GPU's ordinal.
inline constexpr int kHost = -1;

struct BufferView {
  void* data = nullptr;
  /// In elements.
  std::size_t length = 0;
  int device = kHost;
};

/// The memory of a TypedArray whose elements store `dtype` (a Uint16Array for float16 and
/// bfloat16). Throws a TypeError that names the argument if it is something else, detached or
/// misaligned. Valid until JavaScript runs or collects the array: keep a reference for longer use.
BufferView viewOf(const Napi::Value&, DType, const char* name);

/// viewOf() if `device` is kHost; else the memory of a NativeDeviceBuffer of this GPU and dtype.
/// Throws a TypeError for a buffer of another device and for a disposed one.
BufferView viewOn(int device, const Napi::Value&, DType, const char* name);

/// Of either kind, on any device.
BufferView viewOfAny(const Napi::Value&, DType, const char* name);

/// viewOn() with at least `length` elements.
void* memoryOf(const Napi::Value&, DType, std::size_t length, const char* name, int device = kHost);

std::vector<int> ranksArg(const Napi::Value&, const char* name, int size);

/// The dtype that crosses the boundary as a number.
DType dtypeArg(const Napi::Value&);
/// Includes the types of GPU buffers only.
DType gpuDTypeArg(const Napi::Value&);

}  // namespace gradlink::binding

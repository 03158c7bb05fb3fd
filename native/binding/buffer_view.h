// The memory of a TypedArray or a NativeDeviceBuffer, checked.
#pragma once

#include <cstddef>
#include <vector>

#include "binding/napi_setup.h"
#include "core/kernels/dtype.h"

namespace gradlink::binding {

/// Where a TypedArray's memory is; a NativeDeviceBuffer's is on the GPU of its ordinal.
inline constexpr int kHost = -1;

struct BufferView {
  void* data = nullptr;
  /// In elements.
  std::size_t length = 0;
  int device = kHost;
};

/// The memory of a TypedArray whose elements store `dtype` (a Uint16Array for float16 and
/// bfloat16). Throws a TypeError that names the argument when it is something else, detached or
/// misaligned. Valid while JavaScript neither runs nor may collect the array: keep a reference
/// where it must live longer.
BufferView viewOf(const Napi::Value&, DType, const char* name);

/// As viewOf for `device` kHost; else the memory of a NativeDeviceBuffer on this GPU that holds
/// `dtype`. Throws a TypeError that names both devices where it is on another, and for a disposed
/// one.
BufferView viewOn(int device, const Napi::Value&, DType, const char* name);

/// Of either kind, wherever it is.
BufferView viewOfAny(const Napi::Value&, DType, const char* name);

/// As viewOn, and at least `length` elements long.
void* memoryOf(const Napi::Value&, DType, std::size_t length, const char* name, int device = kHost);

/// An Int32Array of ranks below `size`.
std::vector<int> ranksArg(const Napi::Value&, const char* name, int size);

/// The dtype that crosses the boundary as a number.
DType dtypeArg(const Napi::Value&);
/// Also those that only buffers on GPUs have.
DType gpuDTypeArg(const Napi::Value&);

}  // namespace gradlink::binding

// A TypedArray's memory, checked.
#pragma once

#include <cstddef>

#include "binding/napi_setup.h"
#include "core/dtype.h"

namespace gradlink::binding {

struct BufferView {
  void* data = nullptr;
  /// In elements.
  std::size_t length = 0;
};

/// The memory of a TypedArray whose elements store `dtype` (a Uint16Array for float16 and
/// bfloat16). Throws a TypeError that names the argument when it is something else, detached or
/// misaligned. Valid while JavaScript neither runs nor may collect the array: keep a reference
/// where it must live longer.
BufferView viewOf(const Napi::Value&, DType, const char* name);

/// As viewOf, and at least `length` elements long.
void* memoryOf(const Napi::Value&, DType, std::size_t length, const char* name);

/// The dtype that crosses the boundary as a number.
DType dtypeArg(const Napi::Value&);

}  // namespace gradlink::binding

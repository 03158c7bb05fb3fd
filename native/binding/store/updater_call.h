// Calling a JavaScript function that updates a stored value.
#pragma once

#include <cstddef>
#include <vector>

#include "binding/napi_setup.h"
#include "core/kernels/dtype.h"

namespace gradlink::binding {

/// `stored` is changed in place, `received` only read.
struct UpdatedArrays {
  DType dtype;
  std::size_t count;
  const void* received;
  void* stored;
};

/// Calls the function with (key, received, stored, ...more) on copies and takes the new value from
/// `stored`; after an exception the value stays. On the JavaScript thread.
void runUpdater(Napi::Env, const Napi::FunctionReference&, Napi::Value key, const UpdatedArrays&,
                const std::vector<Napi::Value>& more = {});

}  // namespace gradlink::binding

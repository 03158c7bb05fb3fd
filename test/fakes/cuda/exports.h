// The functions that native/cuda looks up, with the types it calls them with: a definition of
// another type does not compile.
#pragma once

#include <type_traits>

#include "cuda/context.h"
#include "support/export.h"

/// FAKE_DRIVER(cuMemFree_v2, (Address address)) { ... } exports a function that is entered as all
/// of the driver's: cuInit was called, and not from within a function that cuLaunchHostFunc runs.
#define FAKE_DRIVER(name, arguments) \
  FAKE_EXPORT_AS(Status, name, arguments, arguments, &entered<&fake_##name>, true)
/// And one with the thread's current context, `context`, that has not failed.
#define FAKE_IN_CONTEXT(name, arguments)                                                           \
  FAKE_EXPORT_AS(Status, name, arguments,                                                          \
                 FAKE_AFTER([[maybe_unused]] Context& context, arguments), &entered<&fake_##name>, \
                 true)

namespace gradlink::fake {

extern "C" {
#define GRADLINK_DECLARE(symbol, member, arguments) \
  __attribute__((visibility("default"))) Status symbol arguments;
GRADLINK_CUDA_REQUIRED(GRADLINK_DECLARE)
GRADLINK_CUDA_OPTIONAL(GRADLINK_DECLARE)
#undef GRADLINK_DECLARE
}

template <auto kFunction, class... Arguments>
Status entered(Arguments... arguments) {
  if constexpr (std::is_invocable_v<decltype(kFunction), Context&, Arguments...>) {
    Context* current = nullptr;
    if (const Status status = enter(current)) return status;
    return kFunction(*current, arguments...);
  } else {
    if (const Status status = enter()) return status;
    return kFunction(arguments...);
  }
}

/// The current context's own stream for the null handle; null for a handle that is none.
std::shared_ptr<Stream> streamOf(StreamHandle handle);

}  // namespace gradlink::fake

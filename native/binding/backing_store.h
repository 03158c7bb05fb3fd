// Memory of ArrayBuffers that outlives them. A reference to an array keeps the array, not its
// memory: transferring its buffer (structuredClone, postMessage) hands the memory to another one,
// and its end frees the memory while a thread of ours still reads or writes it.
#pragma once

#include <memory>

#include "binding/napi_setup.h"

namespace gradlink::binding {

/// Keeps the memory under a TypedArray or an ArrayBuffer for as long as it is held, whoever owns it
/// meanwhile. Null where nothing can take it away: for a SharedArrayBuffer, and for other values.
///
/// Throws an Error of code `unsupported` on a runtime that does not tell where memory is kept.
std::shared_ptr<void> memoryUnder(const Napi::Value&);

}  // namespace gradlink::binding

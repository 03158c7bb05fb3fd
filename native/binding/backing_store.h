// Keeps the memory of ArrayBuffers alive. A reference to an array keeps only the array:
// transferring its buffer (structuredClone, postMessage) moves the memory, which may then be freed
// while our threads use it.
#pragma once

#include <memory>

#include "binding/napi_setup.h"

namespace gradlink::binding {

/// Keeps the memory of a TypedArray or ArrayBuffer, whoever owns it. Null for a SharedArrayBuffer
/// and other values, which cannot be transferred.
///
/// Throws an Error of code `unsupported` on a runtime without access to the memory's owner.
std::shared_ptr<void> memoryUnder(const Napi::Value&);

}  // namespace gradlink::binding

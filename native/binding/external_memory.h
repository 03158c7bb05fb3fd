// Native memory that JavaScript sees as an ArrayBuffer.
#pragma once

#include <cstddef>
#include <memory>

#include "binding/napi_setup.h"

namespace gradlink::binding {

/// An ArrayBuffer over `bytes` bytes at `data`, which `owner` keeps. When the ArrayBuffer is gone,
/// the environment lets go of the owner: not at once, because Node takes all such ArrayBuffers
/// from an environment that ends before threads of ours, which may still use the memory, are told.
///
/// Throws an Error of code `unsupported` in the name of `op` where the runtime has no such thing.
Napi::Value arrayBufferOver(Napi::Env, std::shared_ptr<void> owner, void* data, std::size_t bytes,
                            const char* op);

}  // namespace gradlink::binding

// Native memory exposed to JavaScript as an ArrayBuffer.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>

#include "binding/napi_setup.h"

namespace gradlink::binding {

/// The exposed memory of an object that closes. On the JavaScript thread.
class ShownMemory {
 public:
  struct Piece;

  ShownMemory() = default;
  ~ShownMemory();
  ShownMemory(const ShownMemory&) = delete;
  ShownMemory& operator=(const ShownMemory&) = delete;

  /// Detaches the ArrayBuffers and releases their owners, at once or with pending operations.
  void takeBack(Napi::Env);

  void add(Piece* piece) { pieces_.insert(piece); }
  void remove(Piece* piece) { pieces_.erase(piece); }

 private:
  std::unordered_set<Piece*> pieces_;
};

/// An ArrayBuffer over `bytes` bytes at `data`, which keeps `owner`. The environment releases the
/// owner after the ArrayBuffer: with a delay, because an ending environment drops ArrayBuffers
/// before our threads know. `of`: may take the memory back earlier; may be null.
///
/// Throws an Error of code `unsupported` in the name of `op` if the runtime has no external
/// ArrayBuffers.
Napi::Value arrayBufferOver(Napi::Env, std::shared_ptr<void> owner, void* data, std::size_t bytes,
                            const char* op, ShownMemory* of = nullptr);

}  // namespace gradlink::binding

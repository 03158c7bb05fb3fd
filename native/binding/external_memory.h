// Native memory that JavaScript sees as an ArrayBuffer.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>

#include "binding/napi_setup.h"

namespace gradlink::binding {

/// The memory of something that closes, as far as JavaScript sees it. On the JavaScript thread.
class ShownMemory {
 public:
  /// One ArrayBuffer.
  struct Piece;

  ShownMemory() = default;
  ~ShownMemory();
  ShownMemory(const ShownMemory&) = delete;
  ShownMemory& operator=(const ShownMemory&) = delete;

  /// Empties the ArrayBuffers, as if they had been transferred, and lets go of their owners: at
  /// once, unless an operation that is still pending elsewhere uses the memory; then it goes with
  /// the operation.
  void takeBack(Napi::Env);

  void add(Piece* piece) { pieces_.insert(piece); }
  void remove(Piece* piece) { pieces_.erase(piece); }

 private:
  std::unordered_set<Piece*> pieces_;
};

/// An ArrayBuffer over `bytes` bytes at `data`, which `owner` keeps. When the ArrayBuffer is gone,
/// the environment lets go of the owner: not at once, because Node takes all such ArrayBuffers
/// from an environment that ends before threads of ours, which may still use the memory, are told.
/// `of`: takes the memory back earlier; null where nobody does.
///
/// Throws an Error of code `unsupported` in the name of `op` where the runtime has no such thing.
Napi::Value arrayBufferOver(Napi::Env, std::shared_ptr<void> owner, void* data, std::size_t bytes,
                            const char* op, ShownMemory* of = nullptr);

}  // namespace gradlink::binding

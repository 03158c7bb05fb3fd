#include "binding/external_memory.h"

#include <string>
#include <utility>

#include "binding/backing_store.h"
#include "binding/environment.h"
#include "core/error.h"

namespace gradlink::binding {

struct ShownMemory::Piece {
  std::shared_ptr<Environment> environment;
  /// Null once released.
  std::shared_ptr<void> owner;
  /// Null if the memory is never taken back.
  ShownMemory* of = nullptr;
  Napi::Reference<Napi::ArrayBuffer> buffer = {};

  void leave() {
    if (of != nullptr) of->remove(this);
    of = nullptr;
    buffer.Reset();
  }
};

namespace {

void gone(napi_env, void*, void* hint) {
  const std::unique_ptr<ShownMemory::Piece> piece(static_cast<ShownMemory::Piece*>(hint));
  piece->leave();
  if (piece->owner) piece->environment->retire(std::move(piece->owner));
}

/// Null if the runtime cannot say: then no operation holds memory either.
std::shared_ptr<void> heldUnder(const Napi::ArrayBuffer& buffer) {
  try {
    return memoryUnder(buffer);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

ShownMemory::~ShownMemory() {
  // Not taken back: it lives as long as the ArrayBuffers.
  while (!pieces_.empty()) (*pieces_.begin())->leave();
}

void ShownMemory::takeBack(Napi::Env env) {
  const Napi::HandleScope scope(env);
  while (!pieces_.empty()) {
    Piece& piece = **pieces_.begin();
    const Napi::ArrayBuffer buffer = piece.buffer.Value();
    piece.leave();
    // Collected, with its finalizer pending: only operations may use the memory.
    if (buffer.IsEmpty()) continue;
    const std::shared_ptr<void> memory = heldUnder(buffer);
    // Transferred: another ArrayBuffer owns it now.
    if (napi_detach_arraybuffer(env, buffer) != napi_ok) continue;
    if (memory.use_count() <= 1) piece.owner.reset();
  }
}

Napi::Value arrayBufferOver(Napi::Env env, std::shared_ptr<void> owner, void* data,
                            std::size_t bytes, const char* op, ShownMemory* of) {
  auto piece = std::make_unique<ShownMemory::Piece>(
      ShownMemory::Piece{Environment::of(env).shared_from_this(), std::move(owner)});
  napi_value buffer;
  // V8 counts the bytes of external ArrayBuffers itself: adjusting them here would count twice.
  const napi_status status =
      napi_create_external_arraybuffer(env, data, bytes, gone, piece.get(), &buffer);
  if (status == napi_no_external_buffers_allowed) {
    throw unsupported(
        op,
        "this runtime, such as Electron, cannot show native memory as an ArrayBuffer; "
        "use ordinary arrays");
  }
  // Owned by the ArrayBuffer from here on: Node calls the finalizer even if it refuses the size.
  ShownMemory::Piece& shown = *piece.release();
  if (status != napi_ok) {
    if (env.IsExceptionPending()) static_cast<void>(env.GetAndClearPendingException());
    throw harmless(ErrorCode::outOfMemory, op,
                   "this runtime cannot show " + std::to_string(bytes) +
                       " bytes of native memory as one array");
  }
  if (of != nullptr) {
    shown.buffer = Napi::Weak(Napi::ArrayBuffer(env, buffer));
    shown.of = of;
    of->add(&shown);
  }
  return {env, buffer};
}

}  // namespace gradlink::binding

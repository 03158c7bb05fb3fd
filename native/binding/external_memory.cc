#include "binding/external_memory.h"

#include <string>
#include <utility>

#include "binding/environment.h"
#include "core/error.h"

namespace gradlink::binding {

namespace {

struct Shown {
  std::shared_ptr<Environment> environment;
  std::shared_ptr<void> owner;
};

void gone(napi_env, void*, void* hint) {
  const std::unique_ptr<Shown> shown(static_cast<Shown*>(hint));
  shown->environment->retire(std::move(shown->owner));
}

}  // namespace

Napi::Value arrayBufferOver(Napi::Env env, std::shared_ptr<void> owner, void* data,
                            std::size_t bytes, const char* op) {
  auto shown =
      std::make_unique<Shown>(Shown{Environment::of(env).shared_from_this(), std::move(owner)});
  napi_value buffer;
  // V8 counts an external ArrayBuffer's bytes itself, so that adjusting its external memory here
  // would count them twice.
  const napi_status status =
      napi_create_external_arraybuffer(env, data, bytes, gone, shown.get(), &buffer);
  if (status == napi_no_external_buffers_allowed) {
    throw unsupported(op,
                      "this runtime does not let native memory appear as an ArrayBuffer (Electron "
                      "does so); use ordinary arrays");
  }
  // The ArrayBuffer's from here on, and the finalizer's where Node refuses so many bytes: it calls
  // it all the same.
  static_cast<void>(shown.release());
  if (status != napi_ok) {
    if (env.IsExceptionPending()) static_cast<void>(env.GetAndClearPendingException());
    throw harmless(ErrorCode::outOfMemory, op,
                   "this runtime does not show " + std::to_string(bytes) +
                       " bytes of native memory as one array");
  }
  return {env, buffer};
}

}  // namespace gradlink::binding

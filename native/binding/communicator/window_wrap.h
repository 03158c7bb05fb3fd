// NativeWindow: one rank's side of a window. Its operations run on the communicator's queue.
#pragma once

#include <memory>

#include "binding/communicator/handle.h"
#include "binding/napi_setup.h"
#include "core/window.h"

namespace gradlink::binding {

/// A window until it is freed or its communicator closes.
struct OpenWindow final : CommunicatorPart {
  std::shared_ptr<CommunicatorHandle> handle;
  /// Also held by the ArrayBuffer over its memory; keeps the communicator. Null after end().
  std::shared_ptr<Window> window;
  ShownMemory shown;
  DType dtype;
  std::size_t count;
  /// The GPU of the arrays, or kHost.
  int device;

  OpenWindow(std::shared_ptr<CommunicatorHandle> from, std::unique_ptr<Window> made, DType type,
             std::size_t length, int gpu);
  /// Throws ERR_CLOSED after end().
  Window& open() const;
  void end(Napi::Env) override;
};

class WindowWrap final : public Napi::ObjectWrap<WindowWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  /// NativeWindow.open(communicator, dtype, data, zeroInit, sources, destinations, timeoutMs,
  /// array); `array`: on GPUs the DeviceBuffer that becomes the window's array, else null.
  static Napi::Value open(const Napi::CallbackInfo&);
  /// NativeWindow.openHeld(communicator, dtype, [{data, sources, destinations, array}], zeroInit,
  /// timeoutMs): a list of one window for each held NCCL rank.
  static Napi::Value openHeld(const Napi::CallbackInfo&);

  explicit WindowWrap(const Napi::CallbackInfo&);

 private:
  static Napi::Value made(Napi::Env, std::shared_ptr<OpenWindow>);
  Napi::Value memory(const Napi::CallbackInfo&);
  Napi::Value run(const Napi::CallbackInfo&);
  Napi::Value runSync(const Napi::CallbackInfo&);
  Napi::Value versions(const Napi::CallbackInfo&);
  Napi::Value p(const Napi::CallbackInfo&);
  Napi::Value timeoutMs(const Napi::CallbackInfo& info);
  Napi::Value tryLock(const Napi::CallbackInfo&);
  Napi::Value unlock(const Napi::CallbackInfo&);
  Napi::Value free(const Napi::CallbackInfo&);

  std::shared_ptr<OpenWindow> open_;
};

}  // namespace gradlink::binding

// The JavaScript class NativeCommunicator.
#pragma once

#include <memory>

#include "binding/communicator/calls.h"
#include "binding/communicator/handle.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"

namespace gradlink::binding {

class CommunicatorWrap : public Napi::ObjectWrap<CommunicatorWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  static Napi::Object make(Napi::Env, std::shared_ptr<CommunicatorHandle>);
  /// The handle of a NativeCommunicator, for other areas of the addon. Throws a TypeError for other
  /// values, ERR_CLOSED for a closed one. keep() the object while work on the handle is pending.
  static std::shared_ptr<CommunicatorHandle> unwrap(const Napi::Value&);

  explicit CommunicatorWrap(const Napi::CallbackInfo&);

 private:
  static Napi::Value local(const Napi::CallbackInfo&);
  static Napi::Value join(const Napi::CallbackInfo&);
  static Napi::Value joinAll(const Napi::CallbackInfo&);
  static Napi::Value openNccl(const Napi::CallbackInfo&);
  static Napi::Value joinNccl(const Napi::CallbackInfo&);
  static Napi::Value joinMpi(const Napi::CallbackInfo&);
  /// Connects on a new thread; returns a promise of the object.
  static Napi::Value connect(Napi::Env, CommunicatorHandle::Join);

  Napi::Value size(const Napi::CallbackInfo&);
  Napi::Value heldRanks(const Napi::CallbackInfo&);
  Napi::Value backend(const Napi::CallbackInfo&);
  Napi::Value gpus(const Napi::CallbackInfo&);

  Napi::Value run(const Napi::CallbackInfo&);
  Napi::Value runSync(const Napi::CallbackInfo&);
  Napi::Value split(const Napi::CallbackInfo&);
  Napi::Value splitHeld(const Napi::CallbackInfo&);
  Napi::Value follow(const Napi::CallbackInfo&);
  Napi::Value allocShared(const Napi::CallbackInfo&);
  Napi::Value allocRegistered(const Napi::CallbackInfo&);
  Napi::Value setFusion(const Napi::CallbackInfo&);
  Napi::Value setJoinable(const Napi::CallbackInfo&);
  Napi::Value joinOthers(const Napi::CallbackInfo&);
  Napi::Value cancel(const Napi::CallbackInfo&);
  Napi::Value abort(const Napi::CallbackInfo&);
  Napi::Value close(const Napi::CallbackInfo&);

  /// For new calls: throws ERR_CLOSED after close().
  Side side();
  /// Queues an operation with this ticket's number; keeps this object.
  Napi::Value start(Napi::Env, const Napi::Value& ticket, std::function<void(Communicator&)>,
                    PendingOp::Finish, Kept);

  std::shared_ptr<CommunicatorHandle> handle_;
};

}  // namespace gradlink::binding

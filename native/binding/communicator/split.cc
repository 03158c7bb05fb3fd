// Splitting communicators.
#include <memory>
#include <utility>

#include "binding/args.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/errors.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

/// (color, key, timeoutMs, forCollectives)
Napi::Value CommunicatorWrap::split(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handle_->open();
    const int color = static_cast<int>(integerArg(info[0], "color", -1, kMaxInt));
    const int key = static_cast<int>(integerArg(info[1], "key", -kMaxInt, kMaxInt));
    const CallOptions options{numberArg(info[2], "timeoutMs")};
    const bool forCollectives = info[3].ToBoolean();
    auto part = std::make_shared<std::unique_ptr<Communicator>>();
    Kept kept;
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        info.Env(), handle_->queue(),
        [raw = handle_.get(), part, color, key, options, forCollectives] {
          Communicator& whole = raw->communicator();
          auto* const gpus = dynamic_cast<nccl::NcclCommunicator*>(&whole);
          *part = forCollectives && gpus != nullptr ? gpus->splitForCollectives(color, key, options)
                                                    : whole.split(color, key, options);
        },
        [part](Napi::Env at) -> Napi::Value {
          if (!*part) return at.Null();
          return make(at,
                      std::make_shared<CommunicatorHandle>(Environment::of(at), std::move(*part)));
        },
        std::move(kept));
  });
}

}  // namespace gradlink::binding

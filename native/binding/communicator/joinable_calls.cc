// NativeCommunicator's methods for ranks that run out of data.
#include <memory>

#include "binding/args.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/errors.h"

namespace gradlink::binding {

Napi::Value CommunicatorWrap::setJoinable(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    side();
    handle_->makeJoinable();
    return info.Env().Undefined();
  });
}

/// (timeoutMs, ticket); resolves to the rank that joined last.
Napi::Value CommunicatorWrap::joinOthers(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    side();
    JoinableCommunicator* const joinable = handle_->joinable();
    if (joinable == nullptr) {
      throw unsupported("join",
                        "the communicator is not joinable: call setJoinable() on all ranks, "
                        "before the calls that go on without some of them");
    }
    const CallOptions options{numberArg(info[0], "timeoutMs")};
    auto last = std::make_shared<int>(-1);
    return start(
        info.Env(), info[1],
        [joinable, options, last](Communicator&) { *last = joinable->join(options); },
        [last](Napi::Env at) { return Napi::Number::New(at, *last); }, {});
  });
}

}  // namespace gradlink::binding

// What ranks of GPUs that one process holds do with others: parts of them, and messages.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/communicator/held_calls.h"
#include "binding/errors.h"
#include "nccl/nccl.h"

namespace gradlink::binding {
namespace {

std::vector<nccl::Claim> claimsArg(const Napi::Value& colors, const Napi::Value& keys,
                                   std::size_t held) {
  const auto* color =
      static_cast<const std::int32_t*>(memoryOf(colors, DType::int32, held, "colors"));
  const auto* key = static_cast<const std::int32_t*>(memoryOf(keys, DType::int32, held, "keys"));
  std::vector<nccl::Claim> claims;
  for (std::size_t i = 0; i < held; ++i) claims.push_back({color[i], key[i]});
  return claims;
}

}  // namespace

/// (colors, keys, timeoutMs), one of each for each held rank; a list of the part of each, the same
/// object for those of one part, null for none.
Napi::Value CommunicatorWrap::splitHeld(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Communicator& communicator = handle_->open();
    auto claims = claimsArg(info[0], info[1], communicator.heldRanks().size());
    const CallOptions options{numberArg(info[2], "timeoutMs")};
    auto parts = std::make_shared<std::vector<nccl::HeldPart>>();
    Kept kept;
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        info.Env(), handle_->queue(),
        [raw = handle_.get(), parts, claims, options] {
          *parts = gpuRanks(raw->communicator(), "split").splitHeld(claims, options);
        },
        [parts, claims](Napi::Env at) -> Napi::Value {
          const Napi::Array list = Napi::Array::New(at, claims.size());
          for (std::uint32_t i = 0; i < list.Length(); ++i) list.Set(i, at.Null());
          for (nccl::HeldPart& part : *parts) {
            const Napi::Object made = make(at, std::make_shared<CommunicatorHandle>(
                                                   Environment::of(at), std::move(part.part)));
            for (std::uint32_t i = 0; i < list.Length(); ++i) {
              if (claims[i].color == part.color) list.Set(i, made);
            }
          }
          return list;
        },
        std::move(kept));
  });
}

/// (op, [{held, peer, sends, dtype, data}], timeoutMs, ticket)
Napi::Value CommunicatorWrap::messages(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const Side at = side();
    auto op = std::make_shared<const std::string>(stringArg(info[0], "op"));
    const Napi::Array given = arrayArg(info[1], "messages");
    const CallOptions options{numberArg(info[2], "timeoutMs")};
    const auto held = static_cast<int>(at.communicator.heldRanks().size());
    Kept kept;
    std::vector<nccl::HeldMessage> list;
    for (std::uint32_t i = 0; i < given.Length(); ++i) {
      const Napi::Object one = objectArg(given.Get(i), "message");
      nccl::HeldMessage message{};
      message.held = static_cast<std::size_t>(integerArg(one.Get("held"), "held", 0, held - 1));
      message.peer =
          static_cast<int>(integerArg(one.Get("peer"), "peer", 0, at.communicator.size() - 1));
      message.sends = booleanArg(one.Get("sends"), "sends");
      message.dtype = gpuDTypeArg(one.Get("dtype"));
      const BufferView data =
          viewOn(at.deviceOf(message.held), one.Get("data"), message.dtype, "data");
      message.data = data.data;
      message.count = data.length;
      keep(kept, one.Get("data"));
      list.push_back(message);
    }
    return start(
        env, info[3],
        [op, list = std::move(list), options](Communicator& communicator) {
          gpuRanks(communicator, op->c_str()).messages(op->c_str(), list, options);
        },
        {}, std::move(kept));
  });
}

}  // namespace gradlink::binding

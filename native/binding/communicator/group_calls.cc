// Splitting GPU ranks that one process holds.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/communicator/communicator_wrap.h"
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

/// (colors, keys, timeoutMs), one for each held rank; returns a list of their parts, null: none.
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

}  // namespace gradlink::binding

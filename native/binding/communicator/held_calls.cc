#include "binding/communicator/held_calls.h"

#include <string>

#include "binding/args.h"
#include "binding/errors.h"

namespace gradlink::binding {

nccl::NcclCommunicator& gpuRanks(Communicator& communicator, const char* op) {
  auto* const ranks = dynamic_cast<nccl::NcclCommunicator*>(&communicator);
  if (ranks == nullptr) throw unsupported(op, "for ranks of NCCL");
  return *ranks;
}

HeldGatherCall::HeldGatherCall(const Napi::CallbackInfo& info, const Side& side, Kept* kept)
    : dtype_(gpuDTypeArg(info[0])) {
  const Napi::Array list = arrayArg(info[1], "lists");
  const std::size_t held = side.communicator.heldRanks().size();
  if (list.Length() != held) {
    throw argumentError(info.Env(), "lists", std::to_string(held) + " of them",
                        std::to_string(list.Length()));
  }
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object one = objectArg(list.Get(i), "list");
    held_.push_back(gatherArg({one.Get("data"), one.Get("out"), one.Get("sources"),
                               one.Get("counts"), one.Get("destinations")},
                              dtype_, side.deviceOf(i), side.communicator.size()));
    if (kept == nullptr) continue;
    keep(*kept, one.Get("data"));
    keep(*kept, one.Get("out"));
  }
  options_.timeoutMs = numberArg(info[2], "timeoutMs");
}

void HeldGatherCall::operator()(Communicator& communicator) const {
  gpuRanks(communicator, "neighborAllGather").gatherFromNeighbors(dtype_, held_, options_);
}

HeldGossipCall::HeldGossipCall(const Napi::CallbackInfo& info, const Side& side, Kept* kept)
    : dtype_(gpuDTypeArg(info[0])) {
  const Napi::Array list = arrayArg(info[1], "pairs");
  const auto held = static_cast<int>(side.communicator.heldRanks().size());
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object one = objectArg(list.Get(i), "pair");
    nccl::HeldGossip pair{};
    pair.held = static_cast<std::size_t>(integerArg(one.Get("held"), "held", 0, held - 1));
    pair.peer =
        static_cast<int>(integerArg(one.Get("peer"), "peer", 0, side.communicator.size() - 1));
    const int device = side.deviceOf(pair.held);
    const BufferView data = viewOn(device, one.Get("data"), dtype_, "data");
    pair.in = data.data;
    pair.count = data.length;
    pair.out = memoryOf(one.Get("out"), dtype_, data.length, "out", device);
    pair.selfWeight = numberArg(one.Get("selfWeight"), "selfWeight");
    pair.pairWeight = numberArg(one.Get("pairWeight"), "pairWeight");
    pairs_.push_back(pair);
    if (kept == nullptr) continue;
    keep(*kept, one.Get("data"));
    keep(*kept, one.Get("out"));
  }
  options_.timeoutMs = numberArg(info[2], "timeoutMs");
}

void HeldGossipCall::operator()(Communicator& communicator) const {
  gpuRanks(communicator, "pairGossip").gossip(dtype_, pairs_, options_);
}

}  // namespace gradlink::binding

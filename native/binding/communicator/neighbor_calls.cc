// Reading the calls of core/neighbors.h.
#include <limits>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/calls.h"
#include "binding/communicator/held_calls.h"
#include "binding/errors.h"

namespace gradlink::binding {
namespace {

int rankArg(Napi::Env env, std::int32_t rank, int size) {
  if (rank >= 0 && rank < size) return rank;
  throw argumentError(env, "rank", "ranks below " + std::to_string(size), std::to_string(rank));
}

void checkOneRank(Napi::Env env, const Side& side) {
  if (side.communicator.heldRanks().size() == 1) return;
  throw argumentError(env, "communicator", "one that holds one rank", "another");
}

}  // namespace

nccl::HeldGather gatherArg(const GatherArguments& given, DType dtype, int device, int size) {
  const Napi::Env env = given.data.Env();
  nccl::HeldGather one{};
  const BufferView data = viewOn(device, given.data, dtype, "data");
  one.in = data.data;
  one.count = data.length;
  const BufferView ranks = viewOf(given.sources, DType::int32, "sources");
  const auto* counts =
      static_cast<const double*>(memoryOf(given.counts, DType::float64, ranks.length, "counts"));
  std::size_t total = 0;
  for (std::size_t i = 0; i < ranks.length; ++i) {
    const auto count = countArg(Napi::Number::New(env, counts[i]), "count");
    one.sources.push_back(
        {rankArg(env, static_cast<const std::int32_t*>(ranks.data)[i], size), count});
    if (__builtin_add_overflow(total, count, &total)) {
      throw argumentError(env, "counts", "a sum that fits in memory", "more");
    }
  }
  one.out = memoryOf(given.out, dtype, total, "out", device);
  const BufferView destinations = viewOf(given.destinations, DType::int32, "destinations");
  for (std::size_t i = 0; i < destinations.length; ++i) {
    one.destinations.push_back(
        rankArg(env, static_cast<const std::int32_t*>(destinations.data)[i], size));
  }
  return one;
}

NeighborGatherCall::NeighborGatherCall(const Napi::CallbackInfo& info, const Side& side,
                                       Kept* kept) {
  checkOneRank(info.Env(), side);
  const int device = side.deviceOf(0);
  dtype_ = device == kHost ? dtypeArg(info[0]) : gpuDTypeArg(info[0]);
  one_ = gatherArg({info[1], info[2], info[3], info[4], info[5]}, dtype_, device,
                   side.communicator.size());
  options_.timeoutMs = numberArg(info[6], "timeoutMs");
  if (kept != nullptr) {
    keep(*kept, info[1]);
    keep(*kept, info[2]);
  }
}

void NeighborGatherCall::operator()(Communicator& communicator) const {
  communicator.neighborAllGather(one_.in, one_.count, dtype_, one_.out, one_.sources,
                                 one_.destinations, options_);
}

GossipCall::GossipCall(const Napi::CallbackInfo& info, const Side& side, Kept* kept) {
  checkOneRank(info.Env(), side);
  const int device = side.deviceOf(0);
  dtype_ = device == kHost ? dtypeArg(info[0]) : gpuDTypeArg(info[0]);
  const BufferView data = viewOn(device, info[1], dtype_, "data");
  data_ = data.data;
  count_ = data.length;
  out_ = memoryOf(info[2], dtype_, count_, "out", device);
  peer_ = static_cast<int>(integerArg(info[3], "rank", 0, side.communicator.size() - 1));
  selfWeight_ = numberArg(info[4], "selfWeight");
  pairWeight_ = numberArg(info[5], "pairWeight");
  options_.timeoutMs = numberArg(info[6], "timeoutMs");
  if (kept != nullptr) {
    keep(*kept, info[1]);
    keep(*kept, info[2]);
  }
}

void GossipCall::operator()(Communicator& communicator) const {
  communicator.pairGossip(data_, out_, count_, dtype_, peer_, selfWeight_, pairWeight_, options_);
}

}  // namespace gradlink::binding

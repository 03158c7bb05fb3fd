#include "binding/communicator/calls.h"

#include <limits>
#include <optional>
#include <string>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "core/call.h"
#include "core/kernels/reduce_kernels.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

namespace {

/// Elements that one rank's memory must have; empty: the rank needs none.
using Needed = std::optional<std::size_t>;

std::size_t blocks(Napi::Env env, std::size_t count, int size) {
  std::size_t total;
  if (__builtin_mul_overflow(count, static_cast<std::size_t>(size), &total)) {
    throw argumentError(env, "count", "a count that fits in memory", std::to_string(count));
  }
  return total;
}

template <typename Pointer>
void readOne(const Napi::Value& value, const Needed& needed, DType dtype, int device,
             const char* name, Pointer& into, Kept* kept) {
  into = nullptr;
  if (!needed) return;
  into = memoryOf(value, dtype, *needed, name, device);
  if (kept != nullptr) keep(*kept, value);
}

/// One array, or, where the communicator holds several ranks, an array of one for each.
template <typename Pointer, typename NeededBy>
void read(const Napi::Value& value, const Side& side, const NeededBy& neededBy, DType dtype,
          const char* name, RankPointers<Pointer>& into, Kept* kept) {
  const std::span<const int> ranks = side.communicator.heldRanks();
  into.resize(ranks.size());
  if (ranks.size() == 1 && !value.IsArray()) {
    readOne(value, neededBy(ranks[0]), dtype, side.deviceOf(0), name, into[0], kept);
    return;
  }
  const Napi::Array list = arrayArg(value, name);
  if (list.Length() != ranks.size()) {
    throw argumentError(value.Env(), name,
                        "one array for each of the " + std::to_string(ranks.size()) + " held ranks",
                        std::to_string(list.Length()));
  }
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    readOne(list.Get(i), neededBy(ranks[i]), dtype, side.deviceOf(i), name, into[i], kept);
  }
}

/// One factor for each held rank; one more for the result where ranks have host memory.
std::vector<double> readScales(const Napi::Value& value, const Side& side) {
  const BufferView view = viewOf(value, DType::float64, "scales");
  const std::size_t held = side.communicator.heldRanks().size() + (side.gpus.empty() ? 1 : 0);
  if (view.length != held) {
    throw argumentError(value.Env(), "scales", std::to_string(held) + " numbers",
                        std::to_string(view.length));
  }
  const auto* first = static_cast<const double*>(view.data);
  return {first, first + held};
}

/// Below 0 the communicator's own default.
CallOptions callOptionsArg(const Napi::Value& timeoutMs) {
  return CallOptions{numberArg(timeoutMs, "timeoutMs")};
}

std::vector<Neighbor> readNeighbors(const Napi::Value& ranks, const Napi::Value& weights,
                                    const char* name, int size) {
  const BufferView rankView = viewOf(ranks, DType::int32, name);
  const auto* rank = static_cast<const std::int32_t*>(rankView.data);
  const auto* weight =
      static_cast<const double*>(memoryOf(weights, DType::float64, rankView.length, name));
  std::vector<Neighbor> neighbors(rankView.length);
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    if (rank[i] < 0 || rank[i] >= size) {
      throw argumentError(ranks.Env(), name, "ranks below " + std::to_string(size),
                          std::to_string(rank[i]));
    }
    neighbors[i] = Neighbor{rank[i], weight[i]};
  }
  return neighbors;
}

}  // namespace

CollectiveCall::CollectiveCall(const Napi::CallbackInfo& info, const Napi::Value& scales,
                               const Side& side, Kept* kept) {
  const Communicator& communicator = side.communicator;
  const Napi::Env env = info.Env();
  const auto call = integerArg(info[0], "call", 0, 0xFFFFFF);
  const auto kind = call & 0xFF;
  const auto dtype = (call >> 8) & 0xFF;
  const auto reduceOp = call >> 16;
  if (kind >= kCollectiveCount || dtype >= kDTypeCount || reduceOp >= kReduceOpCount) {
    throw argumentError(env, "call", "a known operation", std::to_string(call));
  }
  shape_.kind = static_cast<Kind>(kind);
  shape_.dtype = static_cast<DType>(dtype);
  shape_.op = static_cast<ReduceOp>(reduceOp);
  shape_.count = countArg(info[3], "count");
  shape_.root = static_cast<int>(integerArg(info[4], "root", 0, communicator.size() - 1));
  options_ = callOptionsArg(info[5]);
  if (shape_.kind == Kind::barrier) return;

  const std::size_t one = shape_.count;
  const std::size_t all = blocks(env, one, communicator.size());
  const auto elements = [&](std::size_t blocks) -> Needed {
    if (blocks == 0) return {};
    return blocks == 1 ? one : all;
  };
  const auto inNeeded = [&](int rank) {
    return elements(inBlocks(shape_, communicator.size(), rank));
  };
  const auto outNeeded = [&](int rank) {
    return elements(outBlocks(shape_, communicator.size(), rank));
  };
  read(info[1], side, inNeeded, shape_.dtype, "data", in_, kept);
  read(info[2], side, outNeeded, shape_.dtype, "out", out_, kept);
  if (scales.IsUndefined()) return;
  scales_ = readScales(scales, side);
  if (!side.gpus.empty()) return;
  postscale_ = scales_.back();
  scales_.pop_back();
}

void CollectiveCall::scaled(Communicator& communicator) const {
  const std::span<const int> ranks = communicator.heldRanks();
  const int size = communicator.size();
  const auto scale = [this](void* to, const void* from, double factor, std::size_t blocks) {
    weightedSum(to, {&from, 1}, {&factor, 1}, blocks * shape_.count, shape_.dtype);
  };
  RankPointers<const void*> in = in_;
  std::vector<std::vector<std::byte>> scratch(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (scales_[i] == 1) continue;
    const std::size_t blocks = inBlocks(shape_, size, ranks[i]);
    scratch[i].resize(blocks * shape_.count * sizeOf(shape_.dtype));
    scale(scratch[i].data(), in_.span()[i], scales_[i], blocks);
    in[i] = scratch[i].data();
  }
  communicator.collective(shape_, {in.span(), out_.span()}, options_);
  if (*postscale_ == 1) return;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    void* const out = out_.span()[i];
    if (out != nullptr) scale(out, out, *postscale_, outBlocks(shape_, size, ranks[i]));
  }
}

void CollectiveCall::operator()(Communicator& communicator) const {
  if (postscale_) return scaled(communicator);
  const Buffers buffers{in_.span(), out_.span()};
  if (!scales_.empty()) {
    const nccl::Launch launch{shape_, buffers, scales_};
    auto* const ranks = dynamic_cast<nccl::NcclCommunicator*>(&communicator);
    if (ranks == nullptr) {
      throw Error(ErrorCode::unsupported, "scale is for NCCL; multiply the data before the call")
          .stillUsable();
    }
    return ranks->run({&launch, 1}, options_);
  }
  communicator.collective(shape_, buffers, options_);
}

std::optional<FusedCall> CollectiveCall::fused() const {
  if (shape_.kind != Kind::allReduce || !scales_.empty()) return {};
  FusedCall call;
  call.in.assign(in_.span().begin(), in_.span().end());
  call.out.assign(out_.span().begin(), out_.span().end());
  call.count = shape_.count;
  call.dtype = shape_.dtype;
  call.op = shape_.op;
  call.options = options_;
  return call;
}

NeighborCall::NeighborCall(const Napi::CallbackInfo& info, const Side& side, Kept* kept) {
  const Communicator& communicator = side.communicator;
  dtype_ = dtypeArg(info[0]);
  count_ = countArg(info[3], "count");
  options_ = callOptionsArg(info[5]);
  const Needed one = count_;
  const auto needed = [&](int) { return one; };
  read(info[1], side, needed, dtype_, "data", in_, kept);
  read(info[2], side, needed, dtype_, "out", out_, kept);
  const Napi::Array list = arrayArg(info[4], "neighborhoods");
  if (list.Length() != communicator.heldRanks().size()) {
    throw argumentError(info.Env(), "neighborhoods", "one for each held rank",
                        std::to_string(list.Length()));
  }
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::Object from = objectArg(list.Get(i), "neighborhood");
    const int size = communicator.size();
    Neighborhood& neighborhood = neighborhoods_.emplace_back();
    neighborhood.selfWeight = numberArg(from.Get("selfWeight"), "selfWeight");
    neighborhood.sources =
        readNeighbors(from.Get("sourceRanks"), from.Get("sourceWeights"), "sources", size);
    neighborhood.destinations = readNeighbors(from.Get("destinationRanks"),
                                              from.Get("destinationWeights"), "destinations", size);
    neighborhood.divisor = countArg(from.Get("divisor"), "divisor");
    if (neighborhood.divisor == 0) {
      throw argumentError(info.Env(), "divisor", "1 or more", "0");
    }
    neighborhood.check = booleanArg(from.Get("check"), "check");
  }
}

void NeighborCall::operator()(Communicator& communicator) const {
  communicator.neighborAllReduce({in_.span(), out_.span()}, count_, dtype_, neighborhoods_,
                                 options_);
}

std::optional<FusedCall> NeighborCall::fused() const {
  FusedCall call;
  call.in.assign(in_.span().begin(), in_.span().end());
  call.out.assign(out_.span().begin(), out_.span().end());
  call.count = count_;
  call.dtype = dtype_;
  call.neighborhoods = neighborhoods_;
  call.options = options_;
  return call;
}

MessageCall::MessageCall(const Napi::CallbackInfo& info, const Side& side, int lowestPeer,
                         Kept* kept) {
  const int device = side.deviceOf(0);
  dtype_ = device == kHost ? dtypeArg(info[0]) : gpuDTypeArg(info[0]);
  const BufferView view = viewOn(device, info[1], dtype_, "data");
  if (kept != nullptr) keep(*kept, info[1]);
  data_ = view.data;
  count_ = view.length;
  peer_ = static_cast<int>(integerArg(info[2], "rank", lowestPeer, side.communicator.size() - 1));
  tag_ = static_cast<int>(integerArg(info[3], "tag", 0, kMaxInt));
  options_ = callOptionsArg(info[4]);
}

void MessageCall::send(Communicator& communicator) const {
  communicator.send(data_, count_, dtype_, peer_, tag_, options_);
}

Received MessageCall::receive(Communicator& communicator) const {
  return communicator.receive(data_, count_, dtype_, peer_, tag_, options_);
}

}  // namespace gradlink::binding

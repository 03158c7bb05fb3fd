#include "binding/communicator/calls.h"

#include <string>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/call_parts.h"
#include "binding/errors.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink::binding {

namespace {

/// Elements that one rank's memory must have; empty: unused.
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

/// One array, or an array of one for each held rank if there are several.
template <typename Pointer, typename NeededBy>
void read(const Napi::Value& value, const Side& side, const NeededBy& neededBy, DType dtype,
          const char* name, RankPointers<Pointer>& into, Kept* kept) {
  const std::span<const int> ranks = side.communicator.heldRanks();
  into.resize(ranks.size());
  if (ranks.size() == 1 && !value.IsArray()) {
    readOne(value, neededBy(ranks[0]), dtype, side.deviceOf(0), name, into[0], kept);
    return;
  }
  const Napi::Array list = heldListOf(value, name, ranks.size());
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    readOne(list.Get(i), neededBy(ranks[i]), dtype, side.deviceOf(i), name, into[i], kept);
  }
}

}  // namespace

GivenCall::GivenCall(const GivenArguments& given) {
  const Napi::CallbackInfo& info = given.info;
  const int size = given.side.communicator.size();
  const auto call = integerArg(info[0], "call", 0, 0xFFFFFF);
  const auto kind = call & 0xFF;
  const auto dtype = (call >> 8) & 0xFF;
  const auto reduceOp = call >> 16;
  if (kind >= kKindCount || kind == static_cast<int>(Kind::split) || dtype >= kDTypeCount ||
      reduceOp >= kReduceOpCount) {
    throw argumentError(info.Env(), "call", "a known operation", std::to_string(call));
  }
  shape_.kind = static_cast<Kind>(kind);
  shape_.dtype = static_cast<DType>(dtype);
  shape_.op = static_cast<ReduceOp>(reduceOp);
  shape_.count = countArg(info[3], "count");
  const int least = shape_.kind == Kind::receive ? kAnySource : 0;
  shape_.root = static_cast<int>(integerArg(info[4], "root", least, size - 1));
  options_.timeoutMs = numberArg(info[5], "timeoutMs");
  if (!given.name.IsEmpty() && !given.name.IsUndefined()) {
    name_ = stringArg(given.name, "name");
    options_.name = name_.c_str();
  }
  if (shape_.kind == Kind::barrier) return;
  if (isPlain(shape_.kind)) {
    readBuffers(given);
    if (!given.more.IsUndefined()) readScales(given);
    return;
  }
  if (isMessage(shape_.kind) && given.more.IsUndefined()) {
    readMessage(given);
  } else {
    parts_ = std::make_unique<CallParts>(shape_, given);
  }
  if (shape_.kind == Kind::neighborAllReduce) {
    readBuffers(given);
    return;
  }
  // The parts have replaced these arguments.
  shape_.count = 0;
  if (isMessage(shape_.kind)) shape_.root = 0;
}

GivenCall::~GivenCall() = default;

void GivenCall::readBuffers(const GivenArguments& given) {
  const int size = given.side.communicator.size();
  const std::size_t one = shape_.count;
  const std::size_t all = blocks(given.info.Env(), one, size);
  const auto elements = [&](std::size_t blocks) -> Needed {
    if (blocks == 0) return {};
    return blocks == 1 ? one : all;
  };
  const auto inNeeded = [&](int rank) { return elements(inBlocks(shape_, size, rank)); };
  const auto outNeeded = [&](int rank) { return elements(outBlocks(shape_, size, rank)); };
  read(given.info[1], given.side, inNeeded, shape_.dtype, "data", in_, given.kept);
  read(given.info[2], given.side, outNeeded, shape_.dtype, "out", out_, given.kept);
}

void GivenCall::readMessage(const GivenArguments& given) {
  checkDType(given.info.Env(), shape_.dtype, given.side.gpus.empty());
  const bool sends = shape_.kind == Kind::send;
  const Napi::Value data = given.info[sends ? 1 : 2];
  const BufferView view = viewOn(given.side.deviceOf(0), data, shape_.dtype, "data");
  const int tag = static_cast<int>(integerArg(given.info[3], "tag", 0, kMaxInt));
  message_ = Message{0, shape_.root, tag, sends, shape_.dtype, view.length, view.data};
  if (given.kept != nullptr) keep(*given.kept, data);
}

/// One factor for each held rank; one more for the result if ranks have host memory.
void GivenCall::readScales(const GivenArguments& given) {
  const bool onHost = given.side.gpus.empty();
  const BufferView view = viewOf(given.more, DType::float64, "scales");
  const std::size_t wanted = given.side.held() + (onHost ? 1 : 0);
  if (view.length != wanted) {
    throw argumentError(given.info.Env(), "scales", std::to_string(wanted) + " numbers",
                        std::to_string(view.length));
  }
  const auto* first = static_cast<const double*>(view.data);
  scales_.assign(first, first + wanted);
  if (!onHost) return;
  postscale_ = scales_.back();
  scales_.pop_back();
}

void GivenCall::run(Communicator& communicator) {
  if (postscale_) return runScaled(communicator);
  Call call{shape_, {in_.span(), out_.span()}, options_, scales_};
  if (message_) call.messages = {&*message_, 1};
  if (parts_) {
    call.neighborhoods = parts_->neighborhoods;
    call.counted = &parts_->counted;
    call.gathers = parts_->gathers;
    call.pairs = parts_->pairs;
    call.messages = parts_->messages;
  }
  communicator.run(call);
}

void GivenCall::runScaled(Communicator& communicator) const {
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

std::optional<FusedCall> GivenCall::fused() const {
  const bool weighs = shape_.kind == Kind::neighborAllReduce;
  if (!weighs && (shape_.kind != Kind::allReduce || !scales_.empty())) return {};
  FusedCall call;
  call.in.assign(in_.span().begin(), in_.span().end());
  call.out.assign(out_.span().begin(), out_.span().end());
  call.count = shape_.count;
  call.dtype = shape_.dtype;
  call.op = shape_.op;
  if (weighs) call.neighborhoods = parts_->neighborhoods;
  call.name = name_;
  call.timeoutMs = options_.timeoutMs;
  return call;
}

Napi::Value GivenCall::result(Napi::Env env) const {
  if (parts_) return parts_->result(env, shape_);
  if (!message_ || message_->sends) return env.Undefined();
  Napi::Object object = Napi::Object::New(env);
  object.Set("source", message_->got.source);
  object.Set("count", static_cast<double>(message_->got.count));
  return object;
}

}  // namespace gradlink::binding

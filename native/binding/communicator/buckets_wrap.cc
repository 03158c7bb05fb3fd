#include "binding/communicator/buckets_wrap.h"

#include <algorithm>
#include <string>
#include <utility>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/pending_op.h"

namespace gradlink::binding {
namespace {

constexpr const char* kBucketsClass = "NativeBuckets";
constexpr std::size_t kSlotFields = 4;
// A rank's part is a multiple of this: whole words of codes.
constexpr std::size_t kPartElements = 16;

std::span<const float> floatsArg(const Napi::Value& value, const char* name) {
  const BufferView view = viewOf(value, DType::float32, name);
  return {static_cast<const float*>(view.data), view.length};
}

std::vector<GradientSlot> slotsArg(const Napi::Value& value,
                                   std::span<const std::size_t> bucketCounts) {
  const BufferView view = viewOf(value, DType::float64, "slots");
  const auto* field = static_cast<const double*>(view.data);
  std::vector<GradientSlot> slots(view.length / kSlotFields);
  for (GradientSlot& slot : slots) {
    slot.bucket = static_cast<std::size_t>(field[0]);
    slot.offset = static_cast<std::size_t>(field[1]);
    slot.rows = static_cast<std::size_t>(field[2]);
    slot.columns = static_cast<std::size_t>(field[3]);
    std::size_t count;
    std::size_t end;
    if (slot.bucket >= bucketCounts.size() ||
        __builtin_mul_overflow(slot.rows, slot.columns, &count) ||
        __builtin_add_overflow(slot.offset, count, &end) || end > bucketCounts[slot.bucket]) {
      throw argumentError(value.Env(), "slots", "gradients inside their buckets",
                          "one of bucket " + std::to_string(field[0]));
    }
    field += kSlotFields;
  }
  return slots;
}

BucketHookSpec hookArg(const Napi::Value& value) {
  const Napi::Object from = objectArg(value, "hook");
  BucketHookSpec spec;
  spec.type = stringArg(from.Get("type"), "type");
  spec.threshold = numberArg(from.Get("threshold"), "threshold");
  spec.rank = countArg(from.Get("rank"), "rank");
  spec.startPass = countArg(from.Get("startPass"), "startPass");
  spec.minCompressionRate = numberArg(from.Get("minCompressionRate"), "minCompressionRate");
  spec.seed = countArg(from.Get("seed"), "seed");
  return spec;
}

}  // namespace

/// Queued work keeps the wrap, so nothing uses this when it is destroyed.
struct BucketsWrap::Scratch final : CommunicatorPart {
  Scratch(const std::shared_ptr<Communicator>& from, std::size_t bytes)
      : memory(from->allocShared(bytes), [from](void* gone) { from->freeShared(gone); }) {}
  std::byte* data() const { return static_cast<std::byte*>(memory.get()); }
  void end(Napi::Env) override { memory.reset(); }

  std::shared_ptr<void> memory;
};

void exportBuckets(Napi::Env env, Napi::Object exports) { BucketsWrap::define(env, exports); }

void BucketsWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = BucketsWrap;
  exports.Set(
      kBucketsClass,
      DefineClass(env, kBucketsClass,
                  {InstanceMethod<&Wrap::begin>("begin"), InstanceMethod<&Wrap::add>("add"),
                   InstanceMethod<&Wrap::flush>("flush"), InstanceMethod<&Wrap::wait>("wait"),
                   InstanceMethod<&Wrap::waitSync>("waitSync")}));
}

BucketsWrap::BucketsWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  guarded(env, [&] {
    handle_ = CommunicatorWrap::unwrap(info[0]);
    const Communicator& communicator = handle_->open();
    if (communicator.heldRanks().size() != 1 || !handle_->gpus().empty()) {
      throw argumentError(env, "communicator", "one that holds one rank in host memory", "another");
    }
    const Napi::Array list = arrayArg(info[1], "arrays");
    std::vector<std::span<float>> memory;
    std::vector<std::size_t> counts;
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
      const Napi::Value array = list.Get(i);
      const BufferView view = viewOf(array, DType::float32, "arrays");
      memory.emplace_back(static_cast<float*>(view.data), view.length);
      counts.push_back(view.length);
      keep(arrays_, array);
    }
    const auto step = static_cast<std::size_t>(communicator.size()) * kPartElements;
    evenParts_ = std::ranges::all_of(counts, [&](std::size_t n) { return n % step == 0; });
    std::vector<GradientSlot> slots = slotsArg(info[2], counts);
    const ReduceOp op = integerArg(info[3], "op", 0, 1) == 0 ? ReduceOp::sum : ReduceOp::avg;
    auto hook = BucketHook::create(hookArg(info[4]), op, counts, slots, communicator.size());
    options_.timeoutMs = numberArg(info[5], "timeoutMs");
    const std::size_t scratch = hook->scratchBytes();
    if (scratch > 0) {
      scratch_ = std::make_shared<Scratch>(handle_->share(), scratch);
      handle_->add(scratch_);
    }
    buckets_ =
        std::make_unique<GradientBuckets>(std::move(memory), std::move(slots), std::move(hook));
  });
}

void BucketsWrap::handOver(Napi::Env env, GradientBuckets::Range range) {
  if (range.first == range.last) return;
  handle_->open();
  Kept kept;
  kept.push_back(Napi::Persistent(Value()));
  ++underWay_;
  // Nobody awaits its promise: wait() reports the result.
  PendingOp::start(
      env, handle_->queue(),
      [this, range] {
        for (std::size_t bucket = range.first; bucket < range.last; ++bucket) {
          buckets_->reduce(bucket, scratch_ ? scratch_->data() : nullptr, handle_->communicator(),
                           options_);
        }
        --underWay_;
      },
      {}, std::move(kept));
}

Napi::Value BucketsWrap::begin(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handle_->open();
    const auto* uses = static_cast<const std::uint32_t*>(
        memoryOf(info[0], DType::uint32, buckets_->gradients(), "uses"));
    const auto scale = static_cast<float>(numberArg(info[1], "scale"));
    const bool reduces = booleanArg(info[2], "reduces");
    const bool part = booleanArg(info[3], "part");
    if (part && !evenParts_) {
      throw argumentError(info.Env(), "part", "buckets that divide by the ranks", "others");
    }
    if (underWay_ != 0) {
      throw argumentError(info.Env(), "begin", "a pass that has ended", "one under way");
    }
    const auto result = part ? BucketResult::part : BucketResult::whole;
    handOver(info.Env(), buckets_->begin({uses, buckets_->gradients()}, scale, reduces, result));
    return info.Env().Undefined();
  });
}

Napi::Value BucketsWrap::add(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto last = static_cast<std::int64_t>(buckets_->gradients()) - 1;
    const std::int64_t gradient = integerArg(info[0], "gradient", 0, last);
    handOver(info.Env(),
             buckets_->add(static_cast<std::size_t>(gradient), floatsArg(info[1], "gradient")));
    return info.Env().Undefined();
  });
}

Napi::Value BucketsWrap::flush(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handOver(info.Env(), buckets_->flush());
    return info.Env().Undefined();
  });
}

Napi::Value BucketsWrap::wait(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handle_->open();
    Kept kept;
    kept.push_back(Napi::Persistent(Value()));
    return PendingOp::start(
        info.Env(), handle_->queue(), [] {},
        [this](Napi::Env env) { return toArray(env, buckets_->times()); }, std::move(kept));
  });
}

Napi::Value BucketsWrap::waitSync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handle_->open();
    handle_->runNow([](Communicator&) {});
    return toArray(info.Env(), buckets_->times());
  });
}

Napi::Value BucketsWrap::toArray(Napi::Env env, const std::vector<GradientBuckets::Times>& times) {
  Napi::Float64Array array = Napi::Float64Array::New(env, times.size() * 3);
  double* into = array.Data();
  for (const auto& [ready, start, end] : times) {
    *into++ = ready;
    *into++ = start;
    *into++ = end;
  }
  return array;
}

}  // namespace gradlink::binding

#include "train/gradient_buckets.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace gradlink {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<std::span<float>> buckets,
                                 std::vector<GradientSlot> slots, std::unique_ptr<BucketHook> hook)
    : memory_(std::move(buckets)),
      slots_(std::move(slots)),
      hook_(std::move(hook)),
      gradients_(slots_.size()),
      missing_(memory_.size()),
      next_(memory_.size()),
      times_(memory_.size()) {}

GradientBuckets::Range GradientBuckets::begin(std::span<const std::uint32_t> uses, float scale,
                                              bool reduces, BucketResult result) {
  scale_ = scale;
  reduces_ = reduces;
  result_ = result;
  next_ = 0;
  error_ = nullptr;
  std::ranges::fill(times_, Times{});
  std::ranges::fill(missing_, 0);
  for (std::size_t g = 0; g < slots_.size(); ++g) {
    gradients_[g].left = uses[g];
    if (uses[g] != 0) {
      ++missing_[slots_[g].bucket];
    } else if (reduces) {
      zeroUnused(g);
    }
  }
  return advance();
}

void GradientBuckets::zeroUnused(std::size_t gradient) {
  if (!gradients_[gradient].fresh) return;
  const GradientSlot& slot = slots_[gradient];
  std::ranges::fill(memory_[slot.bucket].subspan(slot.offset, slot.count()), 0.0F);
}

GradientBuckets::Range GradientBuckets::add(std::size_t gradient, std::span<const float> data) {
  Gradient& state = gradients_[gradient];
  const GradientSlot& slot = slots_[gradient];
  if (state.left == 0 || data.size() != slot.count()) {
    throw Error(
        ErrorCode::invalidArgument,
        state.left == 0
            ? "gradient " + std::to_string(gradient) + " was added more often than announced"
            : "expected " + std::to_string(slot.count()) + " elements for gradient " +
                  std::to_string(gradient) + ", got " + std::to_string(data.size()))
        .stillUsable();
  }
  float* const into = memory_[slot.bucket].data() + slot.offset;
  const std::size_t count = data.size();
  if (!state.fresh) {
    for (std::size_t i = 0; i < count; ++i) into[i] += scale_ * data[i];
  } else if (scale_ != 1.0F) {
    for (std::size_t i = 0; i < count; ++i) into[i] = scale_ * data[i];
  } else if (count > 0 && into != data.data()) {
    // Otherwise it was computed in place.
    std::memcpy(into, data.data(), count * sizeof(float));
  }
  state.fresh = false;
  if (--state.left > 0) return {next_, next_};
  --missing_[slot.bucket];
  return advance();
}

GradientBuckets::Range GradientBuckets::flush() {
  if (reduces_) {
    for (std::size_t g = 0; g < slots_.size(); ++g) {
      if (slots_[g].bucket < next_ || gradients_[g].left == 0) continue;
      gradients_[g].left = 0;
      --missing_[slots_[g].bucket];
      zeroUnused(g);
    }
  }
  const Range rest = advance();
  // The next pass overwrites reduced buckets instead of adding to them.
  if (reduces_) {
    for (Gradient& gradient : gradients_) gradient.fresh = true;
  }
  return rest;
}

GradientBuckets::Range GradientBuckets::advance() {
  const std::size_t first = next_;
  if (reduces_) {
    while (next_ < memory_.size() && missing_[next_] == 0) times_[next_++].ready = now();
  }
  return {first, next_};
}

void GradientBuckets::reduce(std::size_t bucket, std::byte* scratch, Communicator& communicator,
                             const CallOptions& options) noexcept {
  if (error_) return;
  times_[bucket].start = now();
  try {
    hook_->reduce(bucket, memory_[bucket], result_, scratch, communicator, options);
  } catch (...) {
    error_ = std::current_exception();
  }
  times_[bucket].end = now();
}

const std::vector<GradientBuckets::Times>& GradientBuckets::times() const {
  if (error_) std::rethrow_exception(error_);
  return times_;
}

}  // namespace gradlink

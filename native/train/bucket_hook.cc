#include "train/bucket_hook.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "kvstore/base/compression.h"
#include "train/power_sgd.h"

namespace gradlink {

std::size_t largest(std::span<const std::size_t> counts) {
  return counts.empty() ? 0 : *std::ranges::max_element(counts);
}

void allReduceInPlace(void* data, std::size_t count, DType dtype, ReduceOp op,
                      Communicator& communicator, const CallOptions& options) {
  const void* const in = data;
  void* const out = data;
  communicator.allReduce({{&in, 1}, {&out, 1}}, count, dtype, op, options);
}

namespace {

struct Place {
  std::size_t begin;
  std::size_t count;
};

Place placeOf(BucketResult result, std::size_t count, const Communicator& communicator) {
  if (result == BucketResult::whole) return {0, count};
  const std::size_t part = count / static_cast<std::size_t>(communicator.size());
  return {static_cast<std::size_t>(communicator.heldRanks()[0]) * part, part};
}

/// Uses a reduce-scatter if a part is enough: half the bytes of an all-reduce.
void reduceInPlace(void* data, Place place, std::size_t count, DType dtype, ReduceOp op,
                   Communicator& communicator, const CallOptions& options) {
  if (place.count == count) {
    return allReduceInPlace(data, count, dtype, op, communicator, options);
  }
  const void* const in = data;
  void* const out = static_cast<std::byte*>(data) + place.begin * sizeOf(dtype);
  communicator.reduceScatter({{&in, 1}, {&out, 1}}, place.count, dtype, op, options);
}

void scale(std::span<float> data, float factor) {
  for (float& value : data) value *= factor;
}

class PlainHook final : public BucketHook {
 public:
  explicit PlainHook(ReduceOp op) : op_(op) {}

  void reduce(std::size_t /*bucket*/, std::span<float> data, BucketResult result,
              std::byte* /*scratch*/, Communicator& communicator,
              const CallOptions& options) override {
    reduceInPlace(data.data(), placeOf(result, data.size(), communicator), data.size(),
                  DType::float32, op_, communicator, options);
  }

 private:
  ReduceOp op_;
};

/// Divides before the sum, so large gradients of many ranks do not overflow.
class HalfHook final : public BucketHook {
 public:
  HalfHook(const std::string& type, ReduceOp op, std::span<const std::size_t> counts, int ranks)
      : codec_(GradientCompression::create(type)),
        dtype_(type == "float16" ? DType::float16 : DType::bfloat16),
        scratchBytes_(codec_.compressedBytes(largest(counts))),
        before_(op == ReduceOp::avg ? 1.0F / static_cast<float>(ranks) : 1.0F) {}

  std::size_t scratchBytes() const override { return scratchBytes_; }

  void reduce(std::size_t /*bucket*/, std::span<float> data, BucketResult result,
              std::byte* scratch, Communicator& communicator, const CallOptions& options) override {
    const Place place = placeOf(result, data.size(), communicator);
    auto* const halves = reinterpret_cast<std::uint8_t*>(scratch);
    if (before_ != 1.0F) scale(data, before_);
    codec_.compress(data.data(), nullptr, halves, data.size());
    reduceInPlace(halves, place, data.size(), dtype_, ReduceOp::sum, communicator, options);
    codec_.decompress(halves + codec_.compressedBytes(place.begin), data.data() + place.begin,
                      place.count);
  }

 private:
  GradientCompression codec_;
  DType dtype_;
  std::size_t scratchBytes_;
  float before_;
};

/// Every rank gathers all codes and adds their values in rank order.
class TwoBitHook final : public BucketHook {
 public:
  TwoBitHook(double threshold, ReduceOp op, std::span<const std::size_t> counts, int ranks)
      : codec_(GradientCompression::create("2bit", threshold)),
        ranks_(static_cast<std::size_t>(ranks)),
        after_(op == ReduceOp::avg ? 1.0F / static_cast<float>(ranks) : 1.0F),
        scratchBytes_(codec_.compressedBytes(largest(counts)) * (ranks_ + 1)) {
    for (const std::size_t count : counts) residuals_.emplace_back(count);
  }

  std::size_t scratchBytes() const override { return scratchBytes_; }

  void reduce(std::size_t bucket, std::span<float> data, BucketResult result, std::byte* scratch,
              Communicator& communicator, const CallOptions& options) override {
    const Place place = placeOf(result, data.size(), communicator);
    const std::size_t end = place.begin + place.count;
    const std::size_t bytes = codec_.compressedBytes(data.size());
    auto* const own = reinterpret_cast<std::uint8_t*>(scratch);
    std::uint8_t* const all = own + bytes;
    codec_.compress(data.data(), residuals_[bucket].data(), own, data.size());
    const void* const in = own;
    void* const out = all;
    communicator.allGather({{&in, 1}, {&out, 1}}, bytes, DType::uint8, options);
    // Whole words of codes, and small enough that the sum stays in the first-level cache.
    constexpr std::size_t kPart = 2048;
    std::array<float, kPart> decoded;
    for (std::size_t at = place.begin; at < end; at += kPart) {
      const std::span<float> part = data.subspan(at, std::min(kPart, end - at));
      std::ranges::fill(part, 0.0F);
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        codec_.decompress(all + rank * bytes + codec_.compressedBytes(at), decoded.data(),
                          part.size());
        for (std::size_t i = 0; i < part.size(); ++i) part[i] += decoded[i];
      }
      scale(part, after_);
    }
  }

 private:
  GradientCompression codec_;
  std::size_t ranks_;
  float after_;
  std::size_t scratchBytes_;
  /// By bucket: what its codes lost.
  std::vector<std::vector<float>> residuals_;
};

}  // namespace

std::unique_ptr<BucketHook> BucketHook::create(const BucketHookSpec& spec, ReduceOp op,
                                               std::span<const std::size_t> bucketCounts,
                                               std::span<const GradientSlot> slots, int ranks) {
  if (spec.type == "plain") return std::make_unique<PlainHook>(op);
  if (spec.type == "float16" || spec.type == "bfloat16") {
    return std::make_unique<HalfHook>(spec.type, op, bucketCounts, ranks);
  }
  if (spec.type == "2bit") {
    return std::make_unique<TwoBitHook>(spec.threshold, op, bucketCounts, ranks);
  }
  if (spec.type == "powersgd") {
    return std::make_unique<PowerSgd>(spec, op, bucketCounts, slots, ranks);
  }
  throw Error(
      ErrorCode::invalidArgument,
      "expected plain, float16, bfloat16, 2bit or powersgd for the hook's type, got " + spec.type)
      .stillUsable();
}

}  // namespace gradlink

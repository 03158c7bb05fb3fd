// Gathers one rank's gradients in buckets as they come, and reduces bucket by bucket.
//
// The computing thread (begin, add, flush) fills buckets and learns which are complete; the
// communicator's thread reduces those. Its queue gets buckets in order, so all ranks make the same
// calls in whatever order buckets complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "train/bucket_hook.h"

namespace gradlink {

class GradientBuckets {
 public:
  /// Monotonic seconds.
  struct Times {
    double ready = 0;
    double start = 0;
    double end = 0;
  };
  /// Buckets to hand over: [first, last).
  struct Range {
    std::size_t first;
    std::size_t last;
  };

  /// The memory is the caller's. Every slot lies in its bucket.
  GradientBuckets(std::vector<std::span<float>> buckets, std::vector<GradientSlot> slots,
                  std::unique_ptr<BucketHook> hook);

  // ---- on the computing thread; nothing may be pending at begin()

  /// uses[g]: how often gradient g will be added, multiplied by `scale`. Without `reduces` no
  /// bucket becomes complete, and the next pass adds to this one.
  Range begin(std::span<const std::uint32_t> uses, float scale, bool reduces,
              BucketResult result = BucketResult::whole);
  /// Gradients in place are not copied. Throws Error(invalidArgument) for more than announced.
  Range add(std::size_t gradient, std::span<const float> data);
  /// Missing gradients count as zeros, which completes the rest.
  Range flush();
  std::size_t buckets() const { return memory_.size(); }
  std::size_t gradients() const { return slots_.size(); }

  // ---- on the communicator's thread

  /// Does nothing after a failure in this pass: the ranks' calls would no longer match.
  void reduce(std::size_t bucket, std::byte* scratch, Communicator& communicator,
              const CallOptions& options) noexcept;

  // ---- when everything handed over is done

  /// Rethrows a failure.
  const std::vector<Times>& times() const;

 private:
  struct Gradient {
    std::uint32_t left = 0;
    /// The next part is copied, not added.
    bool fresh = true;
  };
  Range advance();
  void zeroUnused(std::size_t gradient);

  std::vector<std::span<float>> memory_;
  std::vector<GradientSlot> slots_;
  std::unique_ptr<BucketHook> hook_;
  std::vector<Gradient> gradients_;
  /// By bucket: gradients that are not complete.
  std::vector<std::size_t> missing_;
  std::size_t next_ = 0;
  float scale_ = 1;
  bool reduces_ = true;
  BucketResult result_ = BucketResult::whole;
  std::vector<Times> times_;
  std::exception_ptr error_;
};

}  // namespace gradlink

// Gradients of one rank gathered in buckets, as they come, and reduced bucket by bucket.
//
// Two threads meet here: the one that computes (begin, add, flush) fills buckets and learns which
// are complete; the communicator's reduces those. A bucket is handed over through the
// communicator's queue, whose order is that of the buckets, so that all ranks make the same calls
// whatever is complete first.
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
  /// Buckets to hand over: first to below `last`.
  struct Range {
    std::size_t first;
    std::size_t last;
  };

  /// The memory is the caller's. Every slot lies in its bucket.
  GradientBuckets(std::vector<std::span<float>> buckets, std::vector<GradientSlot> slots,
                  std::unique_ptr<BucketHook> hook);

  // ---- on the thread that computes; nothing may be under way at begin()

  /// uses[g]: how often gradient g will be added. What is added is multiplied by `scale`. Without
  /// `reduces` nothing becomes complete, and the next pass adds to what this one left.
  Range begin(std::span<const std::uint32_t> uses, float scale, bool reduces,
              BucketResult result = BucketResult::whole);
  /// What lies in its place already is not copied. Throws Error(invalidArgument) for more than was
  /// announced.
  Range add(std::size_t gradient, std::span<const float> data);
  /// What has not come counts as zeros: all the rest is complete.
  Range flush();
  std::size_t buckets() const { return memory_.size(); }
  std::size_t gradients() const { return slots_.size(); }

  // ---- on the communicator's thread

  /// Does nothing once one has failed in this pass: the ranks would no longer make the same calls.
  void reduce(std::size_t bucket, std::byte* scratch, Communicator& communicator,
              const CallOptions& options) noexcept;

  // ---- when all that was handed over is done

  /// Rethrows what failed.
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
  /// Of each bucket, gradients that are still to come in full.
  std::vector<std::size_t> missing_;
  std::size_t next_ = 0;
  float scale_ = 1;
  bool reduces_ = true;
  BucketResult result_ = BucketResult::whole;
  std::vector<Times> times_;
  std::exception_ptr error_;
};

}  // namespace gradlink

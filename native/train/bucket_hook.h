// How a bucket of gradients is reduced over the ranks: an all-reduce, possibly compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// A gradient: rows * columns elements of its bucket from `offset` on.
struct GradientSlot {
  std::size_t bucket = 0;
  std::size_t offset = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t count() const { return rows * columns; }
};

/// A rank's result of a bucket: all of it, or the n-th of n equal parts, each a multiple of 16
/// elements. Then the rest of its memory is undefined.
enum class BucketResult { whole, part };

/// Compression options; equal on all ranks.
struct BucketHookSpec {
  /// "plain", "float16", "bfloat16", "2bit" or "powersgd".
  std::string type = "plain";
  /// For 2bit.
  double threshold = 0.5;
  // ---- of powersgd
  std::size_t rank = 1;
  /// Uncompressed passes of each bucket at the start.
  std::size_t startPass = 10;
  double minCompressionRate = 2;
  std::uint64_t seed = 0;
};

/// Reduces buckets in place. Its state belongs to one layout of buckets. One thread at a time.
class BucketHook {
 public:
  /// Throws Error(invalidArgument) for an unknown type. `op` is sum or avg; `ranks`: how many.
  static std::unique_ptr<BucketHook> create(const BucketHookSpec& spec, ReduceOp op,
                                            std::span<const std::size_t> bucketCounts,
                                            std::span<const GradientSlot> slots, int ranks);
  virtual ~BucketHook() = default;
  BucketHook(const BucketHook&) = delete;
  BucketHook& operator=(const BucketHook&) = delete;

  /// Bytes of shared scratch memory for reduce(); its contents are not kept.
  virtual std::size_t scratchBytes() const { return 0; }
  /// Replaces the bucket by all ranks' sum or average; the same bits on each.
  virtual void reduce(std::size_t bucket, std::span<float> data, BucketResult result,
                      std::byte* scratch, Communicator& communicator,
                      const CallOptions& options) = 0;

 protected:
  BucketHook() = default;
};

std::size_t largest(std::span<const std::size_t> counts);

void allReduceInPlace(void* data, std::size_t count, DType dtype, ReduceOp op,
                      Communicator& communicator, const CallOptions& options);

}  // namespace gradlink

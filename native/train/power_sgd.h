// PowerSGD (Vogels, Karimireddy, Jaggi 2019): a gradient matrix M of n x m is sent as P = M Q (n x
// r) and Q = Mᵀ P (m x r). Q is kept between passes, so their product approaches the best
// approximation of rank r. The error is added to the next gradient.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/bucket_hook.h"

namespace gradlink {

class PowerSgd final : public BucketHook {
 public:
  PowerSgd(const BucketHookSpec& spec, ReduceOp op, std::span<const std::size_t> bucketCounts,
           std::span<const GradientSlot> slots, int ranks);

  std::size_t scratchBytes() const override { return scratchBytes_; }
  /// Always the whole: every rank has the thin matrices.
  void reduce(std::size_t bucket, std::span<float> data, BucketResult result, std::byte* scratch,
              Communicator& communicator, const CallOptions& options) override;

 private:
  struct Matrix {
    GradientSlot slot;
    /// Columns of P and Q: the rank, or less for a smaller matrix.
    std::size_t thin;
    /// columns x thin, column-major.
    std::vector<float> q;
  };
  struct Bucket {
    std::vector<Matrix> matrices;
    std::vector<GradientSlot> rest;
    /// The accumulated error, laid out as the bucket.
    std::vector<float> missed;
    std::size_t passes = 0;
  };

  std::size_t rank_;
  std::size_t startPass_;
  ReduceOp op_;
  int ranks_;
  std::vector<Bucket> buckets_;
  std::size_t scratchBytes_ = 0;
};

}  // namespace gradlink

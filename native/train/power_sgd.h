// PowerSGD (Vogels, Karimireddy, Jaggi 2019): a gradient matrix M of n x m travels as P = M Q (n x
// r) and Q = Mᵀ P (m x r), whose product is the best approximation of rank r after enough passes,
// since Q is kept from one pass to the next. What the product misses is added to the next gradient.
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
  /// Always the whole: a matrix comes as the product of thin ones, which every rank has.
  void reduce(std::size_t bucket, std::span<float> data, BucketResult result, std::byte* scratch,
              Communicator& communicator, const CallOptions& options) override;

 private:
  struct Matrix {
    GradientSlot slot;
    /// Columns of P and Q: the rank, or less for a matrix that has less.
    std::size_t thin;
    /// columns x thin, column after column.
    std::vector<float> q;
  };
  struct Bucket {
    std::vector<Matrix> matrices;
    /// What goes as it is.
    std::vector<GradientSlot> rest;
    /// What the products missed so far, laid out as the bucket.
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

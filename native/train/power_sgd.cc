#include "train/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace gradlink {

namespace {

bool isNumber(float value) { return std::isfinite(value); }

/// into = M q, with n rows.
void multiply(const float* m, std::size_t rows, std::size_t columns, const float* q, float* into) {
  for (std::size_t i = 0; i < rows; ++i) {
    const float* const row = m + i * columns;
    float sum = 0;
    for (std::size_t j = 0; j < columns; ++j) sum += row[j] * q[j];
    into[i] = sum;
  }
}

/// into = Mᵀ p, with m columns.
void multiplyTransposed(const float* m, std::size_t rows, std::size_t columns, const float* p,
                        float* into) {
  std::fill_n(into, columns, 0.0F);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* const row = m + i * columns;
    for (std::size_t j = 0; j < columns; ++j) into[j] += p[i] * row[j];
  }
}

/// Modified Gram-Schmidt on columns of length n. A linearly dependent column becomes zero: its
/// direction would be made of rounding errors, which differ between machines.
void orthogonalise(float* p, std::size_t n, std::size_t columns) {
  constexpr double kDependent = 1e-6;
  for (std::size_t c = 0; c < columns; ++c) {
    float* const column = p + c * n;
    const auto dot = [n](const float* a, const float* b) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
      return sum;
    };
    const double before = std::sqrt(dot(column, column));
    for (std::size_t earlier = 0; earlier < c; ++earlier) {
      const float* const other = p + earlier * n;
      const auto along = static_cast<float>(dot(column, other));
      for (std::size_t i = 0; i < n; ++i) column[i] -= along * other[i];
    }
    const double length = std::sqrt(dot(column, column));
    const float factor = length > kDependent * before ? static_cast<float>(1 / length) : 0.0F;
    for (std::size_t i = 0; i < n; ++i) column[i] *= factor;
  }
}

}  // namespace

PowerSgd::PowerSgd(const BucketHookSpec& spec, ReduceOp op,
                   std::span<const std::size_t> bucketCounts, std::span<const GradientSlot> slots,
                   int ranks)
    : rank_(spec.rank), startPass_(spec.startPass), op_(op), ranks_(ranks) {
  buckets_.resize(bucketCounts.size());
  std::mt19937_64 random(spec.seed);
  std::vector<std::size_t> scratch(bucketCounts.size());
  for (const GradientSlot& slot : slots) {
    Bucket& bucket = buckets_[slot.bucket];
    const std::size_t thin = std::min({rank_, slot.rows, slot.columns});
    const auto bytesAsIs = static_cast<double>(slot.count());
    const auto bytesThin = static_cast<double>((slot.rows + slot.columns) * thin);
    if (slot.rows < 2 || bytesThin * spec.minCompressionRate >= bytesAsIs) {
      bucket.rest.push_back(slot);
      scratch[slot.bucket] += slot.count();
      continue;
    }
    // The engine's numbers are the same everywhere; the library's distributions are not.
    Matrix& matrix = bucket.matrices.emplace_back(Matrix{slot, thin, {}});
    matrix.q.resize(slot.columns * thin);
    for (float& value : matrix.q) {
      value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    }
    scratch[slot.bucket] += (slot.rows + slot.columns) * thin;
    bucket.missed.resize(bucketCounts[slot.bucket]);
  }
  scratchBytes_ = largest(scratch) * sizeof(float);
}

void PowerSgd::reduce(std::size_t at, std::span<float> data, BucketResult /*result*/,
                      std::byte* scratch, Communicator& communicator, const CallOptions& options) {
  Bucket& bucket = buckets_[at];
  if (bucket.matrices.empty() || bucket.passes++ < startPass_) {
    allReduceInPlace(data.data(), data.size(), DType::float32, op_, communicator, options);
    return;
  }
  // One collective for the thin matrices P and all uncompressed gradients.
  auto* const first = reinterpret_cast<float*>(scratch);
  float* next = first;
  for (const GradientSlot& slot : bucket.rest) {
    next = std::copy_n(data.data() + slot.offset, slot.count(), next);
  }
  float* const p = next;
  for (const Matrix& matrix : bucket.matrices) {
    const GradientSlot& slot = matrix.slot;
    float* const m = data.data() + slot.offset;
    for (std::size_t i = 0; i < slot.count(); ++i) m[i] += bucket.missed[slot.offset + i];
    for (std::size_t c = 0; c < matrix.thin; ++c, next += slot.rows) {
      multiply(m, slot.rows, slot.columns, matrix.q.data() + c * slot.columns, next);
    }
  }
  const auto exchange = [&](float* from, const float* to, ReduceOp op) {
    allReduceInPlace(from, static_cast<std::size_t>(to - from), DType::float32, op, communicator,
                     options);
  };
  // P only provides directions; the rest is now reduced for good.
  exchange(first, next, op_);
  const float* from = first;
  for (const GradientSlot& slot : bucket.rest) {
    std::copy_n(from, slot.count(), data.data() + slot.offset);
    from += slot.count();
  }
  float* const q = next;
  float* column = p;
  for (const Matrix& matrix : bucket.matrices) {
    const GradientSlot& slot = matrix.slot;
    orthogonalise(column, slot.rows, matrix.thin);
    const float* const m = data.data() + slot.offset;
    for (std::size_t c = 0; c < matrix.thin; ++c, column += slot.rows, next += slot.columns) {
      multiplyTransposed(m, slot.rows, slot.columns, column, next);
    }
  }
  exchange(q, next, ReduceOp::avg);
  const float times = op_ == ReduceOp::sum ? static_cast<float>(ranks_) : 1.0F;
  column = p;
  from = q;
  std::vector<float> row;
  for (Matrix& matrix : bucket.matrices) {
    const GradientSlot& slot = matrix.slot;
    // A NaN on any rank spreads over the matrix: this pass shows it, the next uses the old state.
    const std::span<const float> fitted(from, matrix.q.size());
    if (std::ranges::all_of(fitted, isNumber)) std::ranges::copy(fitted, matrix.q.begin());
    row.resize(slot.columns);
    for (std::size_t i = 0; i < slot.rows; ++i) {
      std::ranges::fill(row, 0.0F);
      for (std::size_t c = 0; c < matrix.thin; ++c) {
        const float factor = column[c * slot.rows + i];
        for (std::size_t j = 0; j < slot.columns; ++j)
          row[j] += factor * from[c * slot.columns + j];
      }
      const std::size_t begin = slot.offset + i * slot.columns;
      for (std::size_t j = 0; j < slot.columns; ++j) {
        const float missed = data[begin + j] - row[j];
        if (isNumber(missed)) bucket.missed[begin + j] = missed;
        data[begin + j] = row[j] * times;
      }
    }
    column += slot.rows * matrix.thin;
    from += matrix.q.size();
  }
}

}  // namespace gradlink

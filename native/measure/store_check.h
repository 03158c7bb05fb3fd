// Compares a store's pulls with the expected values: sums in float64, compression by its
// definition. The figures do not depend on the threads: each array is summed from first to last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/dtype.h"

namespace gradlink::measure {

enum class CheckedCompression : std::uint8_t { none = 0, twoBit = 1, oneBit = 2 };

/// How pushed values become expected ones.
struct PushRule {
  DType dtype = DType::float32;
  /// Workers that push the same.
  double workers = 1;
  CheckedCompression compression = CheckedCompression::none;
  float threshold = 0;
  /// Whether the devices are summed in float32 before compression.
  bool compressesSums = false;
};

struct PushedArray {
  std::size_t count = 0;
  /// By device.
  std::vector<const void*> gradients;
  /// Compression's residuals: one for each device, or one if it compresses sums. Else empty.
  std::vector<float*> residuals;
};

struct CheckedArray {
  PushedArray pushed;
  /// The expected values; null: the pushed ones, which are added to the residuals.
  const double* expected = nullptr;
  /// Pulled arrays by device; empty: only the residuals are updated.
  std::vector<const void*> outs;
};

struct CheckedOuts {
  /// The sum of |expected|, for each array.
  std::vector<double> magnitudes;
  /// The sum of |out - expected|, by array, then by device.
  std::vector<double> differences;
  /// Elements that are off by more than the bound or NaN; in the same order.
  std::vector<double> wrong;
};

/// Computes the expected array. Uses the thread pool.
void sumPushed(double* into, const PushedArray&, const PushRule&);

/// Compares all arrays on the thread pool.
CheckedOuts checkOuts(std::span<const CheckedArray> arrays, const PushRule&, double bound);

}  // namespace gradlink::measure

// What a store's pulls must give against what they gave: sums in float64, compression by its
// definition. The figures are the same to the bit however many threads compute them: each array's
// sums go from its first element to its last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/dtype.h"

namespace gradlink::measure {

enum class CheckedCompression : std::uint8_t { none = 0, twoBit = 1, oneBit = 2 };

/// How what is pushed becomes what is expected.
struct PushRule {
  DType dtype = DType::float32;
  /// Workers that push the same.
  double workers = 1;
  CheckedCompression compression = CheckedCompression::none;
  float threshold = 0;
  /// Whether the devices are summed, in float32, before anything is compressed.
  bool compressesSums = false;
};

/// One array of a batch.
struct PushedArray {
  std::size_t count = 0;
  /// By device.
  std::vector<const void*> gradients;
  /// What compression keeps: one for each device or, where it compresses sums, one. Else empty.
  std::vector<float*> residuals;
};

struct CheckedArray {
  PushedArray pushed;
  /// What is expected; null: what is pushed, which then goes into the residuals.
  const double* expected = nullptr;
  /// By device, what was pulled; empty: only the residuals go on.
  std::vector<const void*> outs;
};

struct CheckedOuts {
  /// The sum of |expected|, an array each.
  std::vector<double> magnitudes;
  /// The sum of |out - expected|, by array, then by device.
  std::vector<double> differences;
  /// Elements that are off by more than the bound, or not numbers; the same order.
  std::vector<double> wrong;
};

/// into := what the rule makes of this array. Uses the thread pool.
void sumPushed(double* into, const PushedArray&, const PushRule&);

/// Compares all arrays, on the thread pool, an array a part.
CheckedOuts checkOuts(std::span<const CheckedArray> arrays, const PushRule&, double bound);

}  // namespace gradlink::measure

#include "measure/store_check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/thread_pool.h"
#include "measure/half_numbers.h"

namespace gradlink::measure {
namespace {

// Elements computed, then compared, at a time: they stay in the first-level cache.
constexpr std::size_t kCheckedBlock = 512;
using Block = std::array<double, kCheckedBlock>;

// Elements of a thread's part in sumPushed: whole blocks.
constexpr std::size_t kCheckedElements = 256 * kCheckedBlock;

// Interleaved sums, because each addition depends on the previous one.
constexpr std::size_t kSideBySide = 4;

template <class T, class Decode>
void loadAs(const void* from, std::size_t first, std::size_t count, double* to, Decode decode) {
  const T* const values = static_cast<const T*>(from) + first;
  for (std::size_t i = 0; i < count; ++i) to[i] = decode(values[i]);
}

void load(DType dtype, const void* from, std::size_t first, std::size_t count, double* to) {
  switch (dtype) {
    case DType::float32:
      return loadAs<float>(from, first, count, to, [](float value) { return value; });
    case DType::float64:
      return loadAs<double>(from, first, count, to, [](double value) { return value; });
    case DType::float16:
      return loadAs<std::uint16_t>(from, first, count, to, fromFloat16);
    case DType::bfloat16:
      return loadAs<std::uint16_t>(from, first, count, to, fromBFloat16);
    default:
      return;
  }
}

float codeOf(float rest, const PushRule& rule) {
  if (rule.compression == CheckedCompression::oneBit) return rest > rule.threshold ? 1.0F : -1.0F;
  if (rest >= rule.threshold) return rule.threshold;
  return rest <= -rule.threshold ? -rule.threshold : 0.0F;
}

/// Adds the values of `numbers` after compression.
void addCompressed(const double* numbers, float* residual, std::size_t count, double* sum,
                   const PushRule& rule) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto rest = static_cast<float>(static_cast<double>(residual[i]) + numbers[i]);
    const float code = codeOf(rest, rule);
    residual[i] = rest - code;
    sum[i] += code;
  }
}

/// Computes expected elements first .. first + count - 1, at most a block.
void expectBlock(const PushedArray& pushed, const PushRule& rule, std::size_t first,
                 std::size_t count, double* sum) {
  Block numbers;
  std::fill_n(sum, count, 0.0);
  if (rule.compression == CheckedCompression::none) {
    for (const void* gradient : pushed.gradients) {
      load(rule.dtype, gradient, first, count, numbers.data());
      for (std::size_t i = 0; i < count; ++i) sum[i] += numbers[i];
    }
  } else if (rule.compressesSums) {
    Block merged{};
    for (const void* gradient : pushed.gradients) {
      load(rule.dtype, gradient, first, count, numbers.data());
      for (std::size_t i = 0; i < count; ++i) {
        merged[i] = static_cast<float>(merged[i] + numbers[i]);
      }
    }
    addCompressed(merged.data(), pushed.residuals[0] + first, count, sum, rule);
  } else {
    for (std::size_t device = 0; device < pushed.gradients.size(); ++device) {
      load(rule.dtype, pushed.gradients[device], first, count, numbers.data());
      addCompressed(numbers.data(), pushed.residuals[device] + first, count, sum, rule);
    }
  }
  if (rule.workers > 1) {
    for (std::size_t i = 0; i < count; ++i) sum[i] *= rule.workers;
  }
}

struct Compared {
  double magnitude = 0;
  double* differences;
  double* wrong;
};

/// Continues the sums of `outs` devices from `device` on.
template <std::size_t outs>
void compareSome(const double* expected, const Block* got, std::size_t count, double bound,
                 double* differences, double* wrong) {
  std::array<double, outs> difference;
  std::array<std::size_t, outs> far{};
  std::copy_n(differences, outs, difference.begin());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t out = 0; out < outs; ++out) {
      const double off = std::fabs(got[out][i] - expected[i]);
      difference[out] += off;
      far[out] += static_cast<std::size_t>(!(off <= bound));
    }
  }
  std::copy_n(difference.begin(), outs, differences);
  for (std::size_t out = 0; out < outs; ++out) wrong[out] += static_cast<double>(far[out]);
}

void compareBlock(const CheckedArray& array, DType dtype, double bound, std::size_t first,
                  const double* expected, std::size_t count, Compared& compared) {
  compared.magnitude =
      std::accumulate(expected, expected + count, compared.magnitude,
                      [](double sum, double value) { return sum + std::fabs(value); });
  std::array<Block, kSideBySide> got;
  for (std::size_t device = 0; device < array.outs.size();) {
    const std::size_t some = std::min(kSideBySide, array.outs.size() - device);
    for (std::size_t i = 0; i < some; ++i) {
      load(dtype, array.outs[device + i], first, count, got[i].data());
    }
    double* const differences = compared.differences + device;
    double* const wrong = compared.wrong + device;
    if (some == kSideBySide) {
      compareSome<kSideBySide>(expected, got.data(), count, bound, differences, wrong);
    } else {
      for (std::size_t i = 0; i < some; ++i) {
        compareSome<1>(expected, &got[i], count, bound, differences + i, wrong + i);
      }
    }
    device += some;
  }
}

void compareArray(const CheckedArray& array, const PushRule& rule, double bound,
                  Compared& compared) {
  Block sum;
  for (std::size_t first = 0; first < array.pushed.count; first += kCheckedBlock) {
    const std::size_t count = std::min(kCheckedBlock, array.pushed.count - first);
    if (array.expected == nullptr) expectBlock(array.pushed, rule, first, count, sum.data());
    const double* expected = array.expected == nullptr ? sum.data() : array.expected + first;
    if (!array.outs.empty()) {
      compareBlock(array, rule.dtype, bound, first, expected, count, compared);
    }
  }
}

}  // namespace

void sumPushed(double* into, const PushedArray& pushed, const PushRule& rule) {
  const std::size_t parts = (pushed.count + kCheckedElements - 1) / kCheckedElements;
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const std::size_t end = std::min((part + 1) * kCheckedElements, pushed.count);
    for (std::size_t first = part * kCheckedElements; first < end; first += kCheckedBlock) {
      expectBlock(pushed, rule, first, std::min(kCheckedBlock, end - first), into + first);
    }
  });
}

CheckedOuts checkOuts(std::span<const CheckedArray> arrays, const PushRule& rule, double bound) {
  std::vector<std::size_t> begins;
  std::size_t outs = 0;
  for (const CheckedArray& array : arrays) {
    begins.push_back(outs);
    outs += array.outs.size();
  }
  CheckedOuts result;
  result.magnitudes.resize(arrays.size());
  result.differences.resize(outs);
  result.wrong.resize(outs);
  // The largest first, so no thread is left with one at the end.
  std::vector<std::size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t index) { return arrays[index].pushed.count; });
  std::atomic<std::size_t> next{0};
  ThreadPool& pool = ThreadPool::shared();
  pool.parallel(static_cast<std::size_t>(pool.width()), [&](std::size_t) {
    for (std::size_t i = next++; i < order.size(); i = next++) {
      const std::size_t index = order[i];
      Compared compared{0, result.differences.data() + begins[index],
                        result.wrong.data() + begins[index]};
      compareArray(arrays[index], rule, bound, compared);
      result.magnitudes[index] = compared.magnitude;
    }
  });
  return result;
}

}  // namespace gradlink::measure

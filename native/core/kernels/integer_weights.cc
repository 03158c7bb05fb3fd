#include "core/kernels/integer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace gradlink {
namespace {

/// Elements computed before any is stored, as destinations may be sources; they stay cached.
constexpr std::size_t kBlock = 512;

bool isWhole(double weight) { return std::fabs(weight) < 0x1p63 && std::trunc(weight) == weight; }

/// To nearest, ties to even. Beyond 2^51 adding would round to more than whole numbers.
double rounded(double value) {
  constexpr double kShift = 0x1.8p52;
  if (std::fabs(value) < 0x1p51) return value + kShift - kShift;
  return std::nearbyint(value);
}

template <class T>
T saturated(double value) {
  // The greatest 64-bit integer has no double; its successor has.
  constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
  constexpr double kEnd = 2 * static_cast<double>(kHalf);
  constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
  const double whole = rounded(value);
  if (whole >= kEnd) return std::numeric_limits<T>::max();
  if (whole > kLeast) return static_cast<T>(whole);
  // Infinities of both signs have no sum.
  return std::isnan(whole) ? T{0} : std::numeric_limits<T>::min();
}

template <class T>
void exactBlock(std::span<const WeightedTerm> terms, std::size_t divisor, std::size_t begin,
                std::size_t length, T* results) {
  // Unsigned and at least as wide as int, so wrapping is defined.
  std::uint64_t sums[kBlock] = {};
  for (const WeightedTerm& term : terms) {
    const T* const from = static_cast<const T*>(term.src) + begin;
    const auto weight = static_cast<std::uint64_t>(static_cast<std::int64_t>(term.weight));
    for (std::size_t i = 0; i < length; ++i)
      sums[i] += static_cast<std::uint64_t>(from[i]) * weight;
  }
  using Signed = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto parts = static_cast<Signed>(divisor);
  for (std::size_t i = 0; i < length; ++i) {
    results[i] = static_cast<T>(divisor == 1 ? static_cast<Signed>(sums[i])
                                             : static_cast<Signed>(sums[i]) / parts);
  }
}

template <class T>
void roundedBlock(std::span<const WeightedTerm> terms, std::size_t divisor, std::size_t begin,
                  std::size_t length, T* results) {
  double sums[kBlock] = {};
  for (const WeightedTerm& term : terms) {
    const T* const from = static_cast<const T*>(term.src) + begin;
    for (std::size_t i = 0; i < length; ++i) sums[i] += static_cast<double>(from[i]) * term.weight;
  }
  for (std::size_t i = 0; i < length; ++i)
    results[i] = saturated<T>(sums[i] / static_cast<double>(divisor));
}

template <class T>
void weighted(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
              std::size_t count) {
  std::vector<bool> exact;
  for (std::size_t first = 0; const WeightedOutput& output : outputs) {
    const auto own = terms.subspan(first, output.terms);
    exact.push_back(
        std::ranges::all_of(own, [](const WeightedTerm& term) { return isWhole(term.weight); }));
    first += output.terms;
  }
  std::vector<T> results(outputs.size() * std::min(kBlock, count));
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    T* next = results.data();
    for (std::size_t i = 0, first = 0; i < outputs.size(); first += outputs[i].terms, ++i) {
      const auto own = terms.subspan(first, outputs[i].terms);
      (exact[i] ? exactBlock<T> : roundedBlock<T>)(own, outputs[i].divisor, begin, length, next);
      next += length;
    }
    next = results.data();
    for (const WeightedOutput& output : outputs) {
      std::copy_n(next, length, static_cast<T*>(output.dst) + begin);
      next += length;
    }
  }
}

}  // namespace

void weightedIntegers(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                      std::size_t count, DType dtype) {
  switch (dtype) {
    case DType::int8:
      return weighted<std::int8_t>(outputs, terms, count);
    case DType::uint8:
      return weighted<std::uint8_t>(outputs, terms, count);
    case DType::int16:
      return weighted<std::int16_t>(outputs, terms, count);
    case DType::int32:
      return weighted<std::int32_t>(outputs, terms, count);
    case DType::uint32:
      return weighted<std::uint32_t>(outputs, terms, count);
    case DType::int64:
      return weighted<std::int64_t>(outputs, terms, count);
    case DType::uint64:
      return weighted<std::uint64_t>(outputs, terms, count);
    default:
      break;  // floats have their own kernels
  }
}

}  // namespace gradlink

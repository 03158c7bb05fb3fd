#include "kvstore/optimizer/noise.h"

#include <cmath>

namespace gradlink {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// A 64-bit permutation: every output bit depends on every input bit.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t streamOf(const NoiseOf& of) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(of.seed) + kGolden);
  for (const char byte : of.key) hash = mixed(hash + static_cast<unsigned char>(byte) + kGolden);
  return mixed(hash + static_cast<std::uint64_t>(of.update) * kGolden);
}

/// The natural logarithm of a positive normal number: the library's last bits vary by machine.
double logOfUniform(double x) {
  constexpr double kLog2 = 0.69314718055994530942;
  constexpr int kTerms = 12;
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);  // from 0.5 to 1
  if (fraction < 0.70710678118654752440) {
    fraction *= 2;
    exponent -= 1;
  }
  const double s = (fraction - 1) / (fraction + 1);
  double sum = 0;
  for (int term = kTerms; term >= 0; --term) sum = sum * s * s + 1.0 / (2 * term + 1);
  return exponent * kLog2 + 2 * s * sum;
}

/// Between -1 and 1, exclusive.
double centred(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) / 0x1p31 - 1; }

/// The polar method: a point in the unit disc gives a normal number.
double normalOf(std::uint64_t element) {
  for (std::uint64_t draw = 1;; ++draw) {
    const std::uint64_t bits = mixed(element + draw * kGolden);
    const double x = centred(static_cast<std::uint32_t>(bits));
    const double y = centred(static_cast<std::uint32_t>(bits >> 32));
    const double square = x * x + y * y;
    if (square < 1) return x * std::sqrt(-2 * logOfUniform(square) / square);
  }
}

}  // namespace

template <class T>
void fillNormal(std::span<T> out, const NoiseOf& of, std::size_t first) {
  const std::uint64_t stream = streamOf(of);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<T>(normalOf(mixed(stream + (first + i) * kGolden)));
  }
}

template void fillNormal<float>(std::span<float>, const NoiseOf&, std::size_t);
template void fillNormal<double>(std::span<double>, const NoiseOf&, std::size_t);

}  // namespace gradlink

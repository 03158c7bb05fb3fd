#include "messages/tcp/poly1305.h"

#include <algorithm>
#include <cstring>

namespace gradlink::messages::tcp {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kHalf = 64;

/// Little-endian, as all supported processors.
std::uint64_t wordAt(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

Poly1305::Poly1305(const Block& multiplier, const Block& summand)
    :  // The standard clears these bits, so fewer carries are needed.
      multiplier_{wordAt(multiplier.data()) & 0x0ffffffc0fffffff,
                  wordAt(multiplier.data() + 8) & 0x0ffffffc0ffffffc},
      summand_{wordAt(summand.data()), wordAt(summand.data() + 8)} {}

void Poly1305::mix(const std::uint8_t* data, std::size_t blocks, std::uint64_t beyond) {
  const auto [r0, r1] = multiplier_;
  // 2^130 is 5 modulo the prime 2^130 - 5; r1 is divisible by 4.
  const std::uint64_t folded = r1 + (r1 >> 2);
  auto [h0, h1, h2] = sum_;
  for (; blocks > 0; --blocks, data += kBytes) {
    const Wide low = Wide{h0} + wordAt(data);
    h0 = static_cast<std::uint64_t>(low);
    const Wide high = Wide{h1} + wordAt(data + 8) + static_cast<std::uint64_t>(low >> kHalf);
    h1 = static_cast<std::uint64_t>(high);
    h2 += static_cast<std::uint64_t>(high >> kHalf) + beyond;

    const Wide product0 = Wide{h0} * r0 + Wide{h1} * folded;
    const Wide product1 =
        Wide{h0} * r1 + Wide{h1} * r0 + h2 * folded + static_cast<std::uint64_t>(product0 >> kHalf);
    const std::uint64_t top = h2 * r0 + static_cast<std::uint64_t>(product1 >> kHalf);
    // The part from 2^130 on returns five times: its quarter, plus itself without the last two
    // bits.
    const Wide back = Wide{static_cast<std::uint64_t>(product0)} + (top >> 2) + (top & ~3ull);
    h0 = static_cast<std::uint64_t>(back);
    const Wide carried =
        Wide{static_cast<std::uint64_t>(product1)} + static_cast<std::uint64_t>(back >> kHalf);
    h1 = static_cast<std::uint64_t>(carried);
    h2 = (top & 3) + static_cast<std::uint64_t>(carried >> kHalf);
  }
  sum_ = {h0, h1, h2};
}

Poly1305& Poly1305::update(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  if (filled_ > 0) {
    const std::size_t taken = std::min(bytes, kBytes - filled_);
    std::copy_n(at, taken, rest_.data() + filled_);
    at += taken;
    bytes -= taken;
    filled_ += taken;
    if (filled_ < kBytes) return *this;
    mix(rest_.data(), 1, 1);
    filled_ = 0;
  }
  mix(at, bytes / kBytes, 1);
  filled_ = bytes % kBytes;
  std::copy_n(at + bytes - filled_, filled_, rest_.data());
  return *this;
}

Poly1305::Block Poly1305::finish() {
  if (filled_ > 0) {
    // The bit after the last byte.
    rest_[filled_] = 1;
    std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(filled_) + 1, rest_.end(), 0);
    mix(rest_.data(), 1, 0);
  }
  // Reduces modulo the prime: sum + 5 - 2^130, if not negative.
  const auto [h0, h1, h2] = sum_;
  const Wide low = Wide{h0} + 5;
  const Wide high = Wide{h1} + static_cast<std::uint64_t>(low >> kHalf);
  const std::uint64_t reached = (h2 + static_cast<std::uint64_t>(high >> kHalf)) >> 2;
  const std::uint64_t take = ~(reached - 1);
  const Wide sum0 = Wide{(h0 & ~take) | (static_cast<std::uint64_t>(low) & take)} + summand_[0];
  const std::uint64_t sum1 = ((h1 & ~take) | (static_cast<std::uint64_t>(high) & take)) +
                             summand_[1] + static_cast<std::uint64_t>(sum0 >> kHalf);
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(sum0), sum1};
  Block tag;
  std::memcpy(tag.data(), words.data(), tag.size());
  return tag;
}

}  // namespace gradlink::messages::tcp

// The one-time authenticator Poly1305 (RFC 8439, section 2.5): a polynomial of the data in a secret
// number, plus a secret summand. Some thirty times as fast as HMAC-SHA256, so it can seal data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gradlink::messages::tcp {

class Poly1305 {
 public:
  static constexpr std::size_t kBytes = 16;
  using Block = std::array<std::uint8_t, kBytes>;

  Poly1305() = default;
  /// `multiplier` may serve many messages, `summand` only one.
  Poly1305(const Block& multiplier, const Block& summand);

  Poly1305& update(const void* data, std::size_t bytes);
  /// Call once.
  Block finish();

 private:
  /// Whole blocks, each with `beyond` as its 129th bit.
  void mix(const std::uint8_t* data, std::size_t blocks, std::uint64_t beyond);

  /// r of the standard, h in base 2^64, and s.
  std::array<std::uint64_t, 2> multiplier_{};
  std::array<std::uint64_t, 3> sum_{};
  std::array<std::uint64_t, 2> summand_{};
  Block rest_{};
  std::size_t filled_ = 0;
};

}  // namespace gradlink::messages::tcp

// SHA-256 (FIPS 180-4) and the keyed HMAC over it (RFC 4231): what processes of a job recognise
// each other by. Not for data, for which it would be slow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradlink {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256& update(std::string_view bytes);
  /// Of all that was given to update(). Once.
  Digest finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;
  void mix(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlockBytes> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

Digest sha256(std::string_view bytes);

/// Makes HMACs under one key, of which it is kept what each of them begins with.
class HmacKey {
 public:
  explicit HmacKey(std::string_view key);
  Digest of(std::string_view message) const;

 private:
  Sha256 inner_;
  Sha256 outer_;
};

/// Who does not know the key can neither make nor guess it, whatever others he has seen.
Digest hmacSha256(std::string_view key, std::string_view message);

/// Its bytes, as long as `digest` lives.
std::string_view digestText(const Digest& digest);

std::string toHex(const Digest& digest);

}  // namespace gradlink

// SHA-256 (FIPS 180-4) and HMAC (RFC 4231), to authenticate processes. Too slow for bulk data.
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
  /// Call once.
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

/// Computes HMACs under one key; the key's part of the state is computed once.
class HmacKey {
 public:
  explicit HmacKey(std::string_view key);
  Digest of(std::string_view message) const;

 private:
  Sha256 inner_;
  Sha256 outer_;
};

Digest hmacSha256(std::string_view key, std::string_view message);

/// The digest's bytes; a view into `digest`.
std::string_view digestText(const Digest& digest);

std::string toHex(const Digest& digest);

}  // namespace gradlink

#include "core/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gradlink {
namespace {

// FIPS 180-4, section 4.2.2.
constexpr std::array<std::uint32_t, 64> kRoundWords{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t readBigEndian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

}  // namespace

void Sha256::mix(const std::uint8_t* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = readBigEndian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundWords[t] + w[t];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> mixed{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < mixed.size(); ++i) state_[i] += mixed[i];
}

Sha256& Sha256::update(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), kBlockBytes - filled_);
    std::memcpy(block_.data() + filled_, bytes.data(), taken);
    bytes.remove_prefix(taken);
    filled_ += taken;
    if (filled_ < kBlockBytes) break;
    mix(block_.data());
    filled_ = 0;
  }
  return *this;
}

Digest Sha256::finish() {
  const std::uint64_t bits = bytes_ * 8;
  // Padding: a one bit, zeros, and the number of bits in the last eight bytes of a block.
  constexpr std::size_t kBeforeLength = kBlockBytes - 8;
  std::array<char, 2 * kBlockBytes> end{'\x80'};
  std::size_t length = 1 + (2 * kBlockBytes + kBeforeLength - filled_ - 1) % kBlockBytes;
  for (int shift = 56; shift >= 0; shift -= 8) end[length++] = static_cast<char>(bits >> shift);
  update({end.data(), length});
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest sha256(std::string_view bytes) { return Sha256().update(bytes).finish(); }

std::string_view digestText(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

HmacKey::HmacKey(std::string_view key) {
  constexpr std::size_t kBlock = 64;
  const Digest shortened = key.size() > kBlock ? sha256(key) : Digest{};
  if (key.size() > kBlock) key = digestText(shortened);
  std::string inner(kBlock, '\x36');
  std::string outer(kBlock, '\x5c');
  for (std::size_t i = 0; i < key.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  inner_.update(inner);
  outer_.update(outer);
}

Digest HmacKey::of(std::string_view message) const {
  const Digest within = Sha256(inner_).update(message).finish();
  return Sha256(outer_).update(digestText(within)).finish();
}

Digest hmacSha256(std::string_view key, std::string_view message) {
  return HmacKey(key).of(message);
}

std::string toHex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace gradlink

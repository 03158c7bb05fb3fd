// What tests of random input share: draws that a seed repeats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace gradlink::test {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool oneIn(std::uint64_t n) { return below(n) == 0; }
  /// Small, about one of the boundaries, or anything.
  std::uint64_t number(std::span<const std::uint64_t> boundaries) {
    switch (below(4)) {
      case 0:
        return below(8);
      case 1:
        return boundaries[below(boundaries.size())] + below(3) - 1;
      case 2:
        return engine_() >> below(64);
      default:
        return below(300);
    }
  }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> some(count);
    for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = engine_();
      std::memcpy(some.data() + i, &word, std::min(sizeof(word), count - i));
    }
    return some;
  }

 private:
  std::mt19937_64 engine_;
};

/// GRADLINK_ATTACK_SEED, as the campaigns have it; 1 when absent.
inline std::uint64_t attackSeed() {
  const char* const given = std::getenv("GRADLINK_ATTACK_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

}  // namespace gradlink::test

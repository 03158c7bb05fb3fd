// What was measured of calls, by kind and size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/call.h"

namespace gradlink {

/// Never 0. Sizes within a factor of two share a key.
inline std::uint32_t similarCallsKey(const Shape& shape, std::size_t bytes, int ranks) {
  const auto kind = static_cast<std::uint32_t>(shape.kind);
  const auto dtype = static_cast<std::uint32_t>(shape.dtype);
  const auto op = static_cast<std::uint32_t>(shape.op);
  const auto size = static_cast<std::uint32_t>(std::bit_width(bytes));
  return (((kind << 8 | dtype << 4 | op) << 6 | size) << 12 | static_cast<std::uint32_t>(ranks)) +
         1;
}

template <class Choice>
class SimilarCalls {
 public:
  /// Null: nothing is known yet.
  const Choice* find(std::uint32_t key) const {
    const Entry& entry = entries_[placeOf(key)];
    return entry.key == key ? &entry.choice : nullptr;
  }
  Choice* find(std::uint32_t key) {
    Entry& entry = entries_[placeOf(key)];
    return entry.key == key ? &entry.choice : nullptr;
  }
  /// A dissimilar call with the same place is replaced by `fresh`.
  Choice& at(std::uint32_t key, const Choice& fresh = Choice()) {
    Entry& entry = entries_[placeOf(key)];
    if (entry.key != key) entry = {key, fresh};
    return entry.choice;
  }

 private:
  struct Entry {
    std::uint32_t key = 0;
    Choice choice;
  };
  static std::size_t placeOf(std::uint32_t key) { return (key * 0x9e3779b1u) >> 26; }

  std::array<Entry, 64> entries_;
};

}  // namespace gradlink

// What was measured of calls, by a key that similar ones share (similarCallsKey()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gradlink {

template <class Choice>
class SimilarCalls {
 public:
  /// Null: nothing is known yet.
  const Choice* find(std::uint64_t key) const {
    const Entry& entry = entries_[placeOf(key)];
    return entry.key == key ? &entry.choice : nullptr;
  }
  /// A dissimilar call with the same place is replaced by `fresh`.
  Choice& at(std::uint64_t key, const Choice& fresh = Choice()) {
    Entry& entry = entries_[placeOf(key)];
    if (entry.key != key) entry = {key, fresh};
    return entry.choice;
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Choice choice;
  };
  static std::size_t placeOf(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15u) >> 58; }

  std::array<Entry, 64> entries_;
};

}  // namespace gradlink

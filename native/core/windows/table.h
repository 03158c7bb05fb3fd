// What the ranks of a window tell each other when they make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agreement.h"
#include "core/window.h"

namespace gradlink {

class WindowTable {
 public:
  /// A pair that has no buffer.
  static constexpr std::int64_t kNoSlot = RankTable::kNone;

  /// Collective over the processes of so many ranks; `specs`: of those held here. Throws mismatch,
  /// the same on all ranks, where counts or types differ or a rank names a source that does not
  /// name it as a destination, or the other way round. `extra`: what a backend has to tell beside;
  /// equally long on all ranks.
  WindowTable(std::span<const WindowSpec> specs, int size, const Exchange& exchange,
              std::span<const std::byte> extra = {});

  int size() const { return table_.size(); }
  /// No shorter than what the rank told.
  const std::byte* extra(int rank) const {
    return reinterpret_cast<const std::byte*>(table_.head(rank) + kExtra);
  }
  /// Which of `owner`'s arrays `source` writes to: 0 its own, then one each source in the order of
  /// its list; kNoSlot: none.
  std::int64_t slot(int owner, int source) const;
  /// The owner's arrays: its own and one for each source.
  std::size_t slots(int owner) const;

 private:
  /// Of each rank: count and type, what it tells beside; its slot of each source, and whether it
  /// writes to each.
  static constexpr std::size_t kExtra = 2;

  void check() const;

  RankTable table_;
};

}  // namespace gradlink

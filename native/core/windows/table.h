// What the ranks of a window exchange when they create it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agreement.h"
#include "core/window.h"

namespace gradlink {

class WindowTable {
 public:
  static constexpr std::int64_t kNoSlot = RankTable::kNone;

  /// Collective over the processes of `size` ranks; `specs`: one for each held rank. Throws the
  /// same mismatch on all ranks if counts, types or lists of sources and destinations disagree.
  /// `extra`: bytes of the backend, equally long on all ranks.
  WindowTable(std::span<const WindowSpec> specs, int size, const Exchange& exchange,
              std::span<const std::byte> extra = {});

  int size() const { return table_.size(); }
  /// Not shorter than what the rank sent.
  const std::byte* extra(int rank) const {
    return reinterpret_cast<const std::byte*>(table_.head(rank) + kExtra);
  }
  /// Which of `owner`'s arrays `source` writes to: 0 its own, then one for each source, or kNoSlot.
  std::int64_t slot(int owner, int source) const;
  /// The owner's arrays: its own and one for each source.
  std::size_t slots(int owner) const;

 private:
  /// For each rank: count, type and extra; its slot for each source, and whether it writes to each.
  static constexpr std::size_t kExtra = 2;

  void check() const;

  RankTable table_;
};

}  // namespace gradlink

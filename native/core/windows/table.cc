#include "core/windows/table.h"

#include <cstring>

namespace gradlink {

WindowTable::WindowTable(std::span<const WindowSpec> specs, int size, const Exchange& exchange,
                         std::span<const std::byte> extra)
    : table_(
          size, kExtra + (extra.size() + sizeof(std::int64_t) - 1) / sizeof(std::int64_t),
          specs.size(),
          [&](std::size_t i, const RankTable::Row& row) {
            const WindowSpec& spec = specs[i];
            row.head[0] = static_cast<std::int64_t>(spec.count);
            row.head[1] = static_cast<std::int64_t>(spec.dtype);
            if (!extra.empty()) std::memcpy(row.head + kExtra, extra.data(), extra.size());
            std::int64_t slot = 0;
            for (const int from : spec.sources) row.from[from] = ++slot;
            for (const int to : spec.destinations) row.to[to] = 1;
          },
          exchange) {
  check();
}

std::int64_t WindowTable::slot(int owner, int source) const {
  if (owner < 0 || owner >= size() || source < 0 || source >= size()) return kNoSlot;
  return owner == source ? 0 : table_.from(source, owner);
}

std::size_t WindowTable::slots(int owner) const {
  std::size_t slots = 0;
  for (int r = 0; r < size(); ++r) slots += slot(owner, r) != kNoSlot ? 1 : 0;
  return slots;
}

void WindowTable::check() const {
  constexpr const char* kOp = "createWindow";
  const std::int64_t* const first = table_.head(0);
  for (int r = 0; r < size(); ++r) {
    const std::int64_t* const own = table_.head(r);
    if (own[0] != first[0] || own[1] != first[1]) {
      throw ranksDisagree(kOp, 0, r, "other counts or element types").withRank(r);
    }
    for (int to = 0; to < size(); ++to) {
      if (r == to || table_.sends(r, to) == (slot(to, r) != kNoSlot)) continue;
      throw unmatched(kOp, r, to, table_.sends(r, to)).withRank(to);
    }
  }
}

}  // namespace gradlink

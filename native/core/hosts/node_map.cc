#include "core/hosts/node_map.h"

#include <algorithm>
#include <unordered_map>

namespace gradlink {

NodeMap::NodeMap(const std::vector<int>& nodeOf, int rank) : rank_(rank) {
  std::unordered_map<int, int> numbers;
  for (const int given : nodeOf) {
    const auto [found, fresh] = numbers.try_emplace(given, static_cast<int>(members_.size()));
    if (fresh) members_.emplace_back();
    std::vector<int>& members = members_[static_cast<std::size_t>(found->second)];
    localOf_.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(nodeOf_.size()));
    nodeOf_.push_back(found->second);
    widest_ = std::max(widest_, static_cast<int>(members.size()));
  }
  slotsAreRanks_ = slots() == nodeOf_.size();
  for (int r = 0; r < size(); ++r) {
    slotsAreRanks_ = slotsAreRanks_ && slotOf(r) == static_cast<std::size_t>(r);
  }
}

}  // namespace gradlink

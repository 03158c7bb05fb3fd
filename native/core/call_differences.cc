#include "core/call_differences.h"

#include <algorithm>
#include <cstddef>

namespace gradlink {
namespace {

std::string listOf(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

void CallGroups::add(int rank, const std::string& call) { add({&rank, 1}, call); }

void CallGroups::add(std::span<const int> ranks, const std::string& call) {
  auto same = std::find_if(groups_.begin(), groups_.end(),
                           [&](const auto& group) { return group.first == call; });
  if (same == groups_.end()) same = groups_.insert(groups_.end(), {call, {}});
  same->second.insert(same->second.end(), ranks.begin(), ranks.end());
}

std::string CallGroups::text() const {
  std::string text;
  for (const auto& [call, ranks] : groups_) {
    text += (text.empty() ? "" : "; ") + listOf(ranks) + " called " + call;
  }
  return text;
}

int CallGroups::odd() const { return groups_.size() > 1 ? groups_[1].second.front() : -1; }

int CallGroups::otherThan(int rank) const {
  int first = -1;
  for (const auto& [call, ranks] : groups_) {
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) continue;
    const int least = *std::min_element(ranks.begin(), ranks.end());
    if (first < 0 || least < first) first = least;
  }
  return first;
}

Error differentCalls(const char* op, const std::string& groups, int odd, int other) {
  Error error = harmless(ErrorCode::mismatch, op,
                         "the ranks made different calls: " + groups +
                             ". All ranks must call the same operation with the same count, type, "
                             "op and root");
  error.other = other;
  return error.withRank(odd);
}

std::string listOfRanks(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

}  // namespace gradlink

#include "core/agreement.h"

#include <cstring>
#include <string_view>

#include "core/communicator.h"

namespace gradlink {
namespace {

/// The most names of one call in a message; more would bury the ranks that differ.
constexpr std::size_t kMostNames = 8;
/// The least time for exchanging the names.
constexpr double kNamesMs = 1000;
constexpr std::string_view kCut = "…";

}  // namespace

Exchange exchangeOver(Communicator& communicator, const CallOptions& options) {
  return [&communicator, options](const void* own, void* all, std::size_t bytes) {
    communicator.allGather({{&own, 1}, {&all, 1}}, bytes, DType::uint8, options);
  };
}

CallName::CallName(const char* name) {
  if (name == nullptr) return;
  constexpr std::size_t room = kBytes - 1;
  const std::size_t length = std::strlen(name);
  if (length <= room) {
    std::memcpy(bytes_, name, length);
    return;
  }
  std::size_t kept = room - kCut.size();
  const auto continuesLetter = [](char byte) { return (byte & 0xC0) == 0x80; };
  while (kept > 0 && continuesLetter(name[kept])) --kept;
  std::memcpy(bytes_, name, kept);
  std::memcpy(bytes_ + kept, kCut.data(), kCut.size());
}

// The bytes come from a peer, so the terminator may be missing.
std::string CallName::text() const { return {bytes_, std::find(bytes_, bytes_ + kBytes, '\0')}; }

Deadline deadlineOfNames(Deadline ofCall) {
  const Deadline least = Deadline::in(kNamesMs);
  return ofCall.at() < least.at() ? least : ofCall;
}

void Calls::add(int rank, std::size_t record, const std::string& call, const std::string& name) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& one) { return one.record == record; });
  if (group == groups_.end()) group = groups_.insert(groups_.end(), {record, call, {}, {}});
  group->ranks.push_back(rank);
  if (name.empty()) return;
  auto named = std::find_if(group->names.begin(), group->names.end(),
                            [&](const Named& one) { return one.name == name; });
  if (named == group->names.end()) {
    named = group->names.insert(group->names.end(), {name, {}});
  }
  named->ranks.push_back(rank);
}

std::string Calls::namesOf(const Group& group) {
  std::string text;
  const auto& names = group.names;
  if (names.size() == 1 && names[0].ranks.size() == group.ranks.size()) {
    return " as '" + names[0].name + "'";
  }
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    text += ", " + listOfRanks(names[i].ranks) + " as '" + names[i].name + "'";
  }
  if (names.size() > kMostNames) text += ", others by other names";
  return text;
}

std::string Calls::text() const {
  std::string text;
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    text += (text.empty() ? "" : "; ") + listOfRanks(group->ranks) + " called " + group->call;
    const auto alike = std::find_if(groups_.begin(), group,
                                    [&](const Group& one) { return one.call == group->call; });
    if (alike != group) {
      text += " that differs from rank " + std::to_string(alike->ranks.front()) + "'s";
    }
    text += namesOf(*group);
  }
  return text;
}

void Calls::check(const char* op, int self) const {
  if (groups_.size() < 2) return;
  Error error = harmless(ErrorCode::mismatch, op,
                         "the ranks made different calls: " + text() +
                             ". All ranks must make the same calls in the same order");
  const std::vector<int>& first = groups_[0].ranks;
  const int odd = groups_[1].ranks.front();
  error.other = std::find(first.begin(), first.end(), self) == first.end() ? first.front() : odd;
  throw error.withRank(odd);
}

RankTable::RankTable(int size, std::size_t heads, std::size_t held,
                     const std::function<void(std::size_t i, const Row& row)>& fill,
                     const Exchange& exchange)
    : size_(static_cast<std::size_t>(size)), heads_(heads) {
  const std::size_t width = heads_ + 2 * size_;
  std::vector<std::int64_t> own(held * width, kNone);
  for (std::size_t i = 0; i < held; ++i) {
    std::int64_t* const head = own.data() + i * width;
    fill(i, {head, head + heads_, head + heads_ + size_});
  }
  if (held > 1 && held == size_) {
    cells_ = std::move(own);
  } else {
    cells_.resize(size_ * width);
    exchange(own.data(), cells_.data(), width * sizeof(std::int64_t));
  }
}

Error ranksDisagree(const char* op, int first, int second, const std::string& text) {
  return harmless(ErrorCode::mismatch, op,
                  "rank " + std::to_string(first) + " and rank " + std::to_string(second) +
                      " disagree: " + text);
}

Error unmatched(const char* op, int from, int to, bool senderNames) {
  return ranksDisagree(
      op, from, to,
      senderNames
          ? "the first names the second as a destination, which does not name it as a source"
          : "the second names the first as a source, which does not name it as a destination");
}

std::string listOfRanks(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

}  // namespace gradlink

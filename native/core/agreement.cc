#include "core/agreement.h"

#include "core/communicator.h"

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

Exchange exchangeOver(Communicator& communicator, const CallOptions& options) {
  return [&communicator, options](const void* own, void* all, std::size_t bytes) {
    communicator.allGather({{&own, 1}, {&all, 1}}, bytes, DType::uint8, options);
  };
}

void Calls::add(int rank, std::size_t record, const std::string& call) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& one) { return one.record == record; });
  if (group == groups_.end()) group = groups_.insert(groups_.end(), {record, call, {}});
  group->ranks.push_back(rank);
}

std::string Calls::text() const {
  std::string text;
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    text += (text.empty() ? "" : "; ") + listOf(group->ranks) + " called " + group->call;
    const auto alike = std::find_if(groups_.begin(), group,
                                    [&](const Group& one) { return one.call == group->call; });
    if (alike != group) {
      text += " that differs from rank " + std::to_string(alike->ranks.front()) + "'s";
    }
  }
  return text;
}

void Calls::check(const char* op, int self) const {
  if (groups_.size() < 2) return;
  Error error = harmless(ErrorCode::mismatch, op,
                         "the ranks made different calls: " + text() +
                             ". All ranks must call the same operation with the same name, count, "
                             "type, op and root");
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
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

}  // namespace gradlink

// How ranks agree before a call moves anything: what each brings goes to all of them, whoever
// carries it, and each judges the same table. So where they differ all throw the same mismatch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace gradlink {

struct CallOptions;
class Communicator;

// ---- what carries it

/// Puts what each rank brings (`bytes` each) one after the other into `all`; `own` is what the
/// ranks held here bring, likewise.
using Exchange = std::function<void(const void* own, void* all, std::size_t bytes)>;

/// The allGather of a communicator that holds one rank and outlives it.
Exchange exchangeOver(Communicator& communicator, const CallOptions& options);

/// What each of `size` ranks brings, of which one is held here.
template <class Record>
std::vector<Record> exchangeRecords(const Exchange& exchange, int size, const Record& own) {
  std::vector<Record> all(static_cast<std::size_t>(size));
  exchange(&own, all.data(), sizeof(Record));
  return all;
}

// ---- ranks that make one call

/// Who called what.
class Calls {
 public:
  /// `record`: a number for what the rank brings, the same for what is equal; `call` shows it.
  void add(int rank, std::size_t record, const std::string& call);

  /// Throws the mismatch where ranks made different calls: to blame is the first whose call differs
  /// from that of the rank added first. `self` throws it. The communicator stays usable, as nothing
  /// was moved.
  void check(const char* op, int self) const;

 private:
  struct Group {
    std::size_t record;
    std::string call;
    std::vector<int> ranks;
  };
  std::string text() const;

  std::vector<Group> groups_;
};

/// Throws the mismatch where the ranks' records differ; describe() of a record shows it. `ranks`:
/// whose they are; of all ranks in order where it is empty.
template <class Record>
void checkSame(const char* op, std::span<const Record> all, int self,
               std::span<const int> ranks = {}) {
  if (std::all_of(all.begin(), all.end(), [&](const Record& r) { return r == all.front(); }))
    return;
  Calls calls;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto first = std::find(all.begin(), all.end(), all[i]) - all.begin();
    calls.add(ranks.empty() ? static_cast<int>(i) : ranks[i], static_cast<std::size_t>(first),
              describe(all[i]));
  }
  calls.check(op, self);
}

// ---- ranks that exchange something with some of the others

/// What each rank says of itself and of its messages to and from each other rank, in whole numbers.
class RankTable {
 public:
  /// Of a message that is not.
  static constexpr std::int64_t kNone = -1;

  /// A rank's own: `head` of itself, `to` and `from` each rank.
  struct Row {
    std::int64_t* head;
    std::int64_t* to;
    std::int64_t* from;
  };

  static std::size_t bytesOf(int size, std::size_t heads) {
    return (heads + 2 * static_cast<std::size_t>(size)) * sizeof(std::int64_t);
  }

  /// `fill` sets the rows of the ranks held here, which say kNone of everything. Where these are
  /// all of several ranks nothing is exchanged.
  RankTable(int size, std::size_t heads, std::size_t held,
            const std::function<void(std::size_t i, const Row& row)>& fill,
            const Exchange& exchange);

  int size() const { return static_cast<int>(size_); }
  const std::int64_t* head(int rank) const {
    return cells_.data() + static_cast<std::size_t>(rank) * (heads_ + 2 * size_);
  }
  /// What `from` says of its message to `to`.
  std::int64_t to(int from, int to) const {
    return head(from)[heads_ + static_cast<std::size_t>(to)];
  }
  /// What `to` says of the message that it gets from `from`.
  std::int64_t from(int from, int to) const {
    return head(to)[heads_ + size_ + static_cast<std::size_t>(from)];
  }
  bool sends(int from, int to) const { return this->to(from, to) != kNone; }

 private:
  std::size_t size_;
  std::size_t heads_;
  std::vector<std::int64_t> cells_;
};

/// The mismatch of two ranks; the communicator stays usable.
Error ranksDisagree(const char* op, int first, int second, const std::string& text);

/// The same of a message that one of them alone names: the sender or the receiver.
Error unmatched(const char* op, int from, int to, bool senderNames);

/// "rank 3", "ranks 1, 2 and 5"; the first so many of many.
std::string listOfRanks(const std::vector<int>& ranks);

}  // namespace gradlink

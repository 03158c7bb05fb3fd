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

#include "core/deadline.h"
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

/// What each of `size` ranks brings; those held here bring the same.
template <class Record>
std::vector<Record> exchangeRecords(const Exchange& exchange, int size, const Record& own,
                                    std::size_t held = 1) {
  std::vector<Record> all(static_cast<std::size_t>(size));
  if (held == 1) {
    exchange(&own, all.data(), sizeof(Record));
  } else {
    const std::vector<Record> ofEach(held, own);
    exchange(ofEach.data(), all.data(), sizeof(Record));
  }
  return all;
}

// ---- ranks that make one call

/// What a rank named its call, as the others hear of it: no longer than a message shows.
class CallName {
 public:
  CallName() = default;
  /// Null: no name. A longer one is cut between two letters, and ends in an ellipsis.
  explicit CallName(const char* name);
  /// Empty where there is none.
  std::string text() const;

 private:
  static constexpr std::size_t kBytes = 48;
  char bytes_[kBytes] = {};
};

/// Until when ranks exchange the names of their calls. All of them have come, so that a deadline
/// which is near gives a second more.
Deadline deadlineOfNames(Deadline ofCall);

/// Who called what.
class Calls {
 public:
  /// `record`: a number for what the rank brings, the same for what is equal; `call` shows it. The
  /// name says nothing of what the rank brings.
  void add(int rank, std::size_t record, const std::string& call, const std::string& name = {});

  /// Throws the mismatch where ranks made different calls: to blame is the first whose call differs
  /// from that of the rank added first. `self` throws it. The communicator stays usable, as nothing
  /// was moved.
  void check(const char* op, int self) const;

 private:
  struct Named {
    std::string name;
    std::vector<int> ranks;
  };
  struct Group {
    std::size_t record;
    std::string call;
    std::vector<int> ranks;
    /// Of those that have one.
    std::vector<Named> names;
  };
  std::string text() const;
  static std::string namesOf(const Group& group);

  std::vector<Group> groups_;
};

/// Throws the mismatch where the ranks' records differ; describe() of a record shows it.
/// `namesOfAll` exchanges the CallNames of all ranks: then alone, and on all of them. `ranks`:
/// whose the records are; of all ranks in order where it is empty.
template <class Record, class NamesOfAll>
void checkSame(const char* op, std::span<const Record> all, int self, const NamesOfAll& namesOfAll,
               std::span<const int> ranks = {}) {
  if (std::all_of(all.begin(), all.end(), [&](const Record& r) { return r == all.front(); }))
    return;
  const std::vector<CallName> names = namesOfAll();
  Calls calls;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto first = std::find(all.begin(), all.end(), all[i]) - all.begin();
    const int rank = ranks.empty() ? static_cast<int>(i) : ranks[i];
    calls.add(rank, static_cast<std::size_t>(first), describe(all[i]),
              names[static_cast<std::size_t>(rank)].text());
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

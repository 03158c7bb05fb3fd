// How ranks agree before a call moves anything. Every rank gets what all of them announce and
// judges the same table, so all ranks throw the same mismatch.
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

/// All-gathers `bytes` of each rank into `all`, in rank order. `own` holds this process's ranks.
using Exchange = std::function<void(const void* own, void* all, std::size_t bytes)>;

/// The allGather of a communicator that holds one rank. The communicator must outlive the result.
Exchange exchangeOver(Communicator& communicator, const CallOptions& options);

/// All-gathers one record of each of `size` ranks; ranks held here announce the same.
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

/// The caller's name for a call, as sent to the other ranks: at most as long as messages show.
class CallName {
 public:
  CallName() = default;
  /// Null: no name. A longer one is cut between two characters and ends in an ellipsis.
  explicit CallName(const char* name);
  std::string text() const;

 private:
  static constexpr std::size_t kBytes = 48;
  char bytes_[kBytes] = {};
};

/// The deadline for exchanging names: all ranks have arrived, so a near one is extended.
Deadline deadlineOfNames(Deadline ofCall);

class Calls {
 public:
  /// `record` numbers what the rank announces: equal announcements have equal numbers. `call`
  /// describes it and `name` does not enter the comparison.
  void add(int rank, std::size_t record, const std::string& call, const std::string& name = {});

  /// Throws a mismatch if ranks made different calls. The error blames the first rank whose call
  /// differs from that of the rank added first. The communicator stays usable: nothing was moved.
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
    std::vector<Named> names;
  };
  std::string text() const;
  static std::string namesOf(const Group& group);

  std::vector<Group> groups_;
};

/// Throws a mismatch if the records differ; describe() renders one. `namesOfAll` exchanges the
/// CallNames and is called only then, on all ranks. `ranks`: the records' ranks; empty: all.
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

/// What each rank announces about itself and about its messages to and from every other rank.
class RankTable {
 public:
  /// There is no such message.
  static constexpr std::int64_t kNone = -1;

  /// One rank's announcement: `head` about itself, `to` and `from` for each rank.
  struct Row {
    std::int64_t* head;
    std::int64_t* to;
    std::int64_t* from;
  };

  static std::size_t bytesOf(int size, std::size_t heads) {
    return (heads + 2 * static_cast<std::size_t>(size)) * sizeof(std::int64_t);
  }

  /// `fill` sets the rows of the held ranks, initially kNone. No exchange if all ranks are held.
  RankTable(int size, std::size_t heads, std::size_t held,
            const std::function<void(std::size_t i, const Row& row)>& fill,
            const Exchange& exchange);

  int size() const { return static_cast<int>(size_); }
  const std::int64_t* head(int rank) const {
    return cells_.data() + static_cast<std::size_t>(rank) * (heads_ + 2 * size_);
  }
  /// What `from` announced about its message to `to`.
  std::int64_t to(int from, int to) const {
    return head(from)[heads_ + static_cast<std::size_t>(to)];
  }
  /// What `to` announced about its message from `from`.
  std::int64_t from(int from, int to) const {
    return head(to)[heads_ + size_ + static_cast<std::size_t>(from)];
  }
  bool sends(int from, int to) const { return this->to(from, to) != kNone; }

 private:
  std::size_t size_;
  std::size_t heads_;
  std::vector<std::int64_t> cells_;
};

Error ranksDisagree(const char* op, int first, int second, const std::string& text);

/// The mismatch of a message that only its sender or only its receiver announced.
Error unmatched(const char* op, int from, int to, bool senderNames);

/// "rank 3" or "ranks 1, 2, 5"; of many the first ones and how many more.
std::string listOfRanks(const std::vector<int>& ranks);

}  // namespace gradlink

// Where the ranks of a communicator meet: in the process that made its id. Ranks of that process
// call it; a rank of another process has two threads here that call it in its name (wire.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "nccl/steps.h"

namespace gradlink::fake {

/// Who a rank is.
struct RankInfo {
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t device = 0;
  std::int32_t version = 0;
  std::int32_t process = 0;
  std::int32_t reserved = 0;
  /// The library's hash of the host's name.
  std::uint64_t host = 0;
};

enum class Joining : std::int32_t { joined, cut, duplicateGpu, otherVersion, badRank };

/// One send or receive of a group.
struct Message {
  std::int32_t peer = 0;
  std::int32_t isSend = 0;
  std::uint64_t bytes = 0;
  void* data = nullptr;
};

class Hub {
 public:
  /// Blocks until all have come; gives the ranks' GPUs; in the place of those of other
  /// hosts, which nothing here reaches, the rank's own.
  Joining join(const RankInfo& info, std::vector<int>& devices);
  /// Called once, when all ranks are here; before any of them joins.
  void whenMet(std::function<void()> met) { met_ = std::move(met); }

  /// The rank's next collective. `remote`: in the name of a rank of another process, whose answer
  /// is due when this returns true. Blocks until all ranks have made theirs, forever where they
  /// differ; `clock` is simulated time, of the rank's process. False when the rank was cut.
  bool collective(int rank, const Entry& entry, double& clock, bool remote);
  /// All sends and receives of one group. A message whose receive wants another length never
  /// arrives.
  bool exchange(int rank, const std::vector<Message>& messages, double& clock, bool remote);

  /// Waits until what came together has reached its ranks, those of other processes too: `rank`'s
  /// process may then end. Returns early when the rank is cut.
  void flush(int rank);
  /// An answer to another process that a call of its rank made due is on its way.
  void answered();

  /// Ends what the rank waits for, now and later. Returns when none of its memory is in use.
  void cut(int rank);

 private:
  struct Meeting {
    std::vector<Entry> entries;
    std::vector<double> clocks;
    std::vector<char> here;
    int arrived = 0;
    int left = 0;
    bool done = false;
    double seconds = 0;
  };
  struct Letter {
    const Message* message;
    double clock;
    bool done = false;
    double doneAt = 0;
  };
  using Lane = std::pair<int, int>;  // from, to

  bool isCut(int rank) const { return cut_.contains(rank); }
  int processOf(int rank) const { return ranks_[static_cast<std::size_t>(rank)].process; }
  void match(const Lane& lane);
  void delivered(std::size_t count);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RankInfo> ranks_;
  std::vector<char> joined_;
  std::function<void()> met_;
  /// May be cut before they come.
  std::set<int> cut_;
  int size_ = 0;
  int present_ = 0;
  std::vector<std::uint64_t> counts_;
  std::map<std::uint64_t, Meeting> meetings_;
  /// Meetings and letters that came together and whose ranks have not returned yet, and answers
  /// due.
  std::size_t undelivered_ = 0;
  std::map<Lane, std::deque<Letter*>> sends_;
  std::map<Lane, std::deque<Letter*>> receives_;
};

/// Whether several ranks may be on one GPU here, as the environment says of newer versions.
bool mayShareGpus(int version);

}  // namespace gradlink::fake

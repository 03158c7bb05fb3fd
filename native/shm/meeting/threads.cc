// Threads of one process meet in a table of open meetings.
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "shm/meeting/meeting.h"

namespace gradlink::shm {
namespace {

struct Meeting {
  int size = 0;
  int firstRank = 0;
  int arrived = 0;
  std::vector<bool> present;
  std::shared_ptr<void> memory;
  Segment segment;
  std::shared_ptr<Graveyard> graveyard;
  bool complete = false;
  std::optional<Error> failure;
};

// Never destroyed: threads may still be meeting when the process ends.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Meeting>> open;
};

Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

std::vector<int> missing(const Meeting& meeting) {
  std::vector<int> ranks;
  for (int r = 0; r < meeting.size; ++r) {
    if (!meeting.present[static_cast<std::size_t>(r)]) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

Membership meetThreads(const JoinOptions& options, Deadline deadline) {
  Table& all = table();
  const auto key = std::make_pair(options.job, options.name);
  std::unique_lock lock(all.mutex);
  auto& entry = all.open[key];
  if (entry == nullptr) {
    entry = std::make_shared<Meeting>();
    entry->size = options.size;
    entry->firstRank = options.rank;
    entry->present.resize(static_cast<std::size_t>(options.size));
    try {
      Membership made = makePrivateSegment(options.size, options.slotBytes);
      entry->memory = made.memory;
      entry->segment = made.segment;
      entry->graveyard = made.graveyard;
    } catch (...) {
      all.open.erase(key);
      throw;
    }
  }
  const std::shared_ptr<Meeting> meeting = entry;
  // An outcome is for everybody who came; the name is free again at once.
  auto finish = [&] {
    all.open.erase(key);
    all.changed.notify_all();
  };
  auto fail = [&](Error error) {
    meeting->failure = std::move(error);
    finish();
  };
  const auto me = static_cast<std::size_t>(options.rank);
  if (meeting->size != options.size) {
    fail(sizesDiffer(options, meeting->firstRank, meeting->size, options.rank, options.size));
  } else if (meeting->present[me]) {
    fail(rankTakenTwice(options, options.rank));
  } else {
    meeting->present[me] = true;
    recordCores(meeting->segment, options.rank);
    if (++meeting->arrived == meeting->size) {
      meeting->complete = true;
      finish();
    }
  }
  while (!meeting->complete && !meeting->failure) {
    const auto slice = Deadline::Clock::now() + std::chrono::milliseconds(50);
    all.changed.wait_until(lock, std::min(slice, deadline.at()));
    if (meeting->complete || meeting->failure) break;
    try {
      checkWaiting(options, missing(*meeting));
    } catch (const Error&) {
      meeting->present[me] = false;
      if (--meeting->arrived == 0) all.open.erase(key);
      throw;
    }
    if (deadline.passed()) fail(missingRanks(options, missing(*meeting)));
  }
  if (meeting->failure) throw *meeting->failure;
  Membership membership;
  membership.memory = meeting->memory;
  membership.segment = meeting->segment;
  membership.graveyard = meeting->graveyard;
  return membership;
}

}  // namespace gradlink::shm

// Threads of one process meet in a table of open rendezvous.
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "shm/rendezvous/rendezvous.h"

namespace gradlink::shm {
namespace {

struct Rendezvous {
  int size = 0;
  int firstRank = 0;
  int arrived = 0;
  std::vector<bool> present;
  std::shared_ptr<void> memory;
  Segment segment;
  std::shared_ptr<DeferredUnmaps> deferredUnmaps;
  bool complete = false;
  std::optional<Error> failure;
};

// Never destroyed: threads may still be in one when the process ends.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Rendezvous>> open;
};

Table& table() {
  static Table* const instance = new Table;
  return *instance;
}

std::vector<int> missing(const Rendezvous& rendezvous) {
  std::vector<int> ranks;
  for (int r = 0; r < rendezvous.size; ++r) {
    if (!rendezvous.present[static_cast<std::size_t>(r)]) ranks.push_back(r);
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
    entry = std::make_shared<Rendezvous>();
    entry->size = options.size;
    entry->firstRank = options.rank;
    entry->present.resize(static_cast<std::size_t>(options.size));
    try {
      Membership made = makePrivateSegment(options.size, options.slotBytes);
      entry->memory = made.memory;
      entry->segment = made.segment;
      entry->deferredUnmaps = made.deferredUnmaps;
    } catch (...) {
      all.open.erase(key);
      throw;
    }
  }
  const std::shared_ptr<Rendezvous> rendezvous = entry;
  // The outcome is for all ranks that came; the name is free again at once.
  auto finish = [&] {
    all.open.erase(key);
    all.changed.notify_all();
  };
  auto fail = [&](Error error) {
    rendezvous->failure = std::move(error);
    finish();
  };
  const auto me = static_cast<std::size_t>(options.rank);
  if (rendezvous->size != options.size) {
    fail(sizesDiffer(options, rendezvous->firstRank, rendezvous->size, options.rank, options.size));
  } else if (rendezvous->present[me]) {
    fail(rankTakenTwice(options, options.rank));
  } else {
    rendezvous->present[me] = true;
    recordCores(rendezvous->segment, options.rank);
    if (++rendezvous->arrived == rendezvous->size) {
      rendezvous->complete = true;
      finish();
    }
  }
  while (!rendezvous->complete && !rendezvous->failure) {
    const auto slice = Deadline::Clock::now() + std::chrono::milliseconds(50);
    all.changed.wait_until(lock, std::min(slice, deadline.at()));
    if (rendezvous->complete || rendezvous->failure) break;
    try {
      checkWaiting(options, missing(*rendezvous));
    } catch (const Error&) {
      rendezvous->present[me] = false;
      if (--rendezvous->arrived == 0) all.open.erase(key);
      throw;
    }
    if (deadline.passed()) fail(missingRanks(options, missing(*rendezvous)));
  }
  if (rendezvous->failure) throw *rendezvous->failure;
  Membership membership;
  membership.memory = rendezvous->memory;
  membership.segment = rendezvous->segment;
  membership.deferredUnmaps = rendezvous->deferredUnmaps;
  return membership;
}

}  // namespace gradlink::shm

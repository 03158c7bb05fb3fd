#include "nccl/hub.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gradlink::fake {

bool mayShareGpus(int version) {
  const char* allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return version >= 23003 && allowed != nullptr && std::strcmp(allowed, "1") == 0;
}

Joining Hub::join(const RankInfo& info, std::vector<int>& devices) {
  std::unique_lock lock(mutex_);
  if (size_ == 0) {
    const auto size = static_cast<std::size_t>(info.size);
    size_ = info.size;
    ranks_.resize(size);
    joined_.resize(size);
    counts_.resize(size);
  }
  if (info.size != size_ || info.rank < 0 || info.rank >= size_) return Joining::badRank;
  const auto rank = static_cast<std::size_t>(info.rank);
  if (joined_[rank] != 0) return Joining::badRank;
  if (isCut(info.rank)) return Joining::cut;
  joined_[rank] = 1;
  ranks_[rank] = info;
  if (++present_ == size_) {
    std::vector<int> all;
    for (const RankInfo& other : ranks_) all.push_back(other.device);
    logConnections(all);
    if (met_) met_();
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return present_ == size_ || isCut(info.rank); });
  if (isCut(info.rank)) return Joining::cut;
  devices.clear();
  std::set<std::pair<std::uint64_t, std::int32_t>> gpus;
  for (const RankInfo& other : ranks_) {
    if (other.version != info.version) return Joining::otherVersion;
    const bool fresh = gpus.insert({other.host, other.device}).second;
    if (!fresh && !mayShareGpus(info.version)) return Joining::duplicateGpu;
    devices.push_back(other.host == info.host ? other.device : info.device);
  }
  return Joining::joined;
}

bool Hub::collective(int rank, const Entry& entry, double& clock, bool remote) {
  std::unique_lock lock(mutex_);
  if (isCut(rank)) return false;
  const std::uint64_t number = counts_[static_cast<std::size_t>(rank)]++;
  Meeting& meeting = meetings_[number];
  const auto size = static_cast<std::size_t>(size_);
  meeting.entries.resize(size);
  meeting.clocks.resize(size);
  meeting.here.resize(size);
  const auto own = static_cast<std::size_t>(rank);
  meeting.entries[own] = entry;
  meeting.clocks[own] = clock;
  meeting.here[own] = 1;
  if (++meeting.arrived == size_) {
    const bool same = std::all_of(
        meeting.entries.begin(), meeting.entries.end(),
        [&](const Entry& other) { return other.step.sameAs(meeting.entries.front().step); });
    if (same) {
      logTuning(entry.step, size_);
      std::vector<int> devices;
      for (const RankInfo& info : ranks_) devices.push_back(info.device);
      // With the mutex held, so that nobody is cut while its memory is read.
      carryOut(meeting.entries, devices);
      meeting.seconds = secondsOf(entry.step, devices, false);
      meeting.done = true;
      undelivered_ += size;
      changed_.notify_all();
    }
  }
  changed_.wait(lock, [&] { return meeting.done || isCut(rank); });
  if (!meeting.done) {
    // It never comes together any more; what the others wait for is gone.
    meeting.arrived = -size_;
    return false;
  }
  double start = clock;
  for (std::size_t r = 0; r < size; ++r) {
    // Each process has a simulated time of its own.
    if (ranks_[r].process == processOf(rank)) start = std::max(start, meeting.clocks[r]);
  }
  clock = start + meeting.seconds;
  if (!remote) delivered(1);
  if (++meeting.left == size_) meetings_.erase(number);
  return true;
}

void Hub::match(const Lane& lane) {
  std::deque<Letter*>& sends = sends_[lane];
  std::deque<Letter*>& receives = receives_[lane];
  while (!sends.empty() && !receives.empty()) {
    Letter& send = *sends.front();
    Letter& receive = *receives.front();
    if (send.message->bytes != receive.message->bytes) return;
    if (send.message->data != receive.message->data && send.message->bytes > 0) {
      std::memmove(receive.message->data, send.message->data, send.message->bytes);
    }
    const int from = ranks_[static_cast<std::size_t>(lane.first)].device;
    const int to = ranks_[static_cast<std::size_t>(lane.second)].device;
    const double seconds = secondsOf(send.message->bytes, from, to);
    const bool together = processOf(lane.first) == processOf(lane.second);
    const double start = std::max(send.clock, receive.clock);
    send.doneAt = (together ? start : send.clock) + seconds;
    receive.doneAt = (together ? start : receive.clock) + seconds;
    send.done = receive.done = true;
    undelivered_ += 2;
    sends.pop_front();
    receives.pop_front();
  }
}

bool Hub::exchange(int rank, const std::vector<Message>& messages, double& clock, bool remote) {
  std::vector<Letter> letters;
  letters.reserve(messages.size());
  std::unique_lock lock(mutex_);
  if (isCut(rank)) return false;
  for (const Message& message : messages) {
    letters.push_back({&message, clock});
    const Lane lane = message.isSend != 0 ? Lane{rank, message.peer} : Lane{message.peer, rank};
    (message.isSend != 0 ? sends_ : receives_)[lane].push_back(&letters.back());
    match(lane);
  }
  changed_.notify_all();
  const auto allDone = [&] {
    return std::all_of(letters.begin(), letters.end(), [](const Letter& l) { return l.done; });
  };
  changed_.wait(lock, [&] { return allDone() || isCut(rank); });
  const auto done = static_cast<std::size_t>(
      std::count_if(letters.begin(), letters.end(), [](const Letter& l) { return l.done; }));
  if (!allDone()) {
    delivered(done);
    // What was posted is withdrawn: its memory is the caller's again.
    for (auto* box : {&sends_, &receives_}) {
      for (auto& [lane, queue] : *box) {
        std::erase_if(queue, [&](const Letter* letter) {
          return letter >= letters.data() && letter < letters.data() + letters.size();
        });
      }
    }
    return false;
  }
  for (const Letter& letter : letters) clock = std::max(clock, letter.doneAt);
  // Of a remote rank one answer is due for all of them.
  delivered(remote ? done - 1 : done);
  return true;
}

void Hub::delivered(std::size_t count) {
  undelivered_ -= count;
  changed_.notify_all();
}

void Hub::answered() {
  const std::lock_guard lock(mutex_);
  delivered(1);
}

void Hub::flush(int rank) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return undelivered_ == 0 || isCut(rank); });
}

void Hub::cut(int rank) {
  const std::lock_guard lock(mutex_);
  cut_.insert(rank);
  changed_.notify_all();
}

}  // namespace gradlink::fake

// Communicators of parts of the ranks.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

struct PartPlan {
  int color = 0;
  /// The processes that hold its ranks, ordered by their lowest.
  std::vector<int> processes;
  /// For each of these: its new ranks in the part, ascending, and the old ones.
  std::vector<std::vector<int>> ranks;
  std::vector<std::vector<int>> before;
  /// Parts of one round share no process, so one split of the control communicator serves them.
  int round = 0;

  int placeOf(int process) const {
    const auto found = std::find(processes.begin(), processes.end(), process);
    return found == processes.end() ? -1 : static_cast<int>(found - processes.begin());
  }
};

/// By ascending color; equal on all processes.
std::vector<PartPlan> planParts(std::span<const Claim> claims, const Processes& processes) {
  std::map<int, std::vector<std::pair<int, int>>> members;  // key, old rank
  for (std::size_t r = 0; r < claims.size(); ++r) {
    if (claims[r].color < 0) continue;
    members[claims[r].color].emplace_back(claims[r].key, static_cast<int>(r));
  }
  std::vector<PartPlan> parts;
  std::vector<int> roundsOf(static_cast<std::size_t>(processes.size()));
  for (auto& [color, ordered] : members) {
    std::sort(ordered.begin(), ordered.end());
    PartPlan part;
    part.color = color;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      const int old = ordered[i].second;
      const int process = processes.holder(old);
      int at = part.placeOf(process);
      if (at < 0) {
        at = static_cast<int>(part.processes.size());
        part.processes.push_back(process);
        part.ranks.emplace_back();
        part.before.emplace_back();
      }
      part.ranks[static_cast<std::size_t>(at)].push_back(static_cast<int>(i));
      part.before[static_cast<std::size_t>(at)].push_back(old);
    }
    for (const int process : part.processes) {
      part.round = std::max(part.round, roundsOf[static_cast<std::size_t>(process)]);
    }
    for (const int process : part.processes) {
      roundsOf[static_cast<std::size_t>(process)] = part.round + 1;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::unique_ptr<Communicator> Ranks::split(int color, int key, const CallOptions& options) {
  std::unique_ptr<Communicator> part;
  guarded("split", options, [&](const Watch& watch) {
    needOneRank(watch.op);
    agree(Shape{.kind = Kind::split}, watch);
    if (processes_) {
      const Claim claim{color, key};
      std::vector<HeldPart> parts = splitOver({&claim, 1}, watch);
      if (!parts.empty()) part = std::move(parts.front().part);
      return;
    }
    Options own = options_;
    own.timeoutMs = watch.leftMs();
    if (control_) {
      std::unique_ptr<Communicator> control =
          control_->split(color, key, {.timeoutMs = own.timeoutMs});
      if (control) part = join(std::move(control), devices_.front()->ordinal(), own);
      return;
    }
    const int mine[2] = {color, key};
    std::vector<std::array<int, 2>> all(static_cast<std::size_t>(size_));
    exchange(mine, all.data(), sizeof(mine), watch);
    std::vector<std::pair<int, int>> members;  // key, old rank
    for (int r = 0; r < size_; ++r) {
      const auto& theirs = all[static_cast<std::size_t>(r)];
      if (theirs[0] == color) members.emplace_back(theirs[1], r);
    }
    std::sort(members.begin(), members.end());
    // The first rank of each part makes its id; all ids are exchanged together.
    UniqueId id{};
    const bool leads = color >= 0 && members.front().second == ranks_.front();
    if (leads) id = makeUniqueId();
    std::vector<UniqueId> ids(static_cast<std::size_t>(size_));
    exchange(id.data(), ids.data(), sizeof(UniqueId), watch);
    if (color < 0) return;
    const auto self = std::find_if(members.begin(), members.end(), [&](const auto& member) {
      return member.second == ranks_.front();
    });
    part = join(ids[static_cast<std::size_t>(members.front().second)],
                static_cast<int>(self - members.begin()), static_cast<int>(members.size()),
                devices_.front()->ordinal(), own);
  });
  return part;
}

// Without a control communicator the library exchanges the ids, and their makers wait for the
// ranks: parts meet at once. So do those of processes that hold several ranks.
std::unique_ptr<Communicator> Ranks::splitForCollectives(int color, int key,
                                                         const CallOptions& options) {
  if (!control_ || processes_) return split(color, key, options);
  std::unique_ptr<Communicator> part;
  guarded("split", options, [&](const Watch& watch) {
    needOneRank(watch.op);
    agree(Shape{.kind = Kind::split}, watch);
    std::unique_ptr<Communicator> control =
        control_->split(color, key, {.timeoutMs = watch.leftMs()});
    if (!control) return;
    HeldRanks held{{control->heldRanks()[0]}, devices_, control->size(), nullptr, {}};
    held.control = std::move(control);
    part = std::make_unique<Ranks>(std::move(held), std::span<const UniqueId>(), options_);
  });
  return part;
}

std::vector<HeldPart> Ranks::splitHeld(std::span<const Claim> claims, const CallOptions& options) {
  if (ranks_.size() == 1 && claims.size() == 1) {
    std::vector<HeldPart> parts;
    std::unique_ptr<Communicator> part = split(claims[0].color, claims[0].key, options);
    if (!part) return parts;
    auto* const own = dynamic_cast<NcclCommunicator*>(part.release());
    parts.push_back({claims[0].color, std::unique_ptr<NcclCommunicator>(own)});
    return parts;
  }
  std::vector<HeldPart> parts;
  guarded("split", options, [&](const Watch& watch) {
    if (claims.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " colors and keys, one for each rank held, got " +
                                 std::to_string(claims.size()));
    }
    agree(Shape{.kind = Kind::split}, watch);
    parts = splitOver(claims, watch);
  });
  return parts;
}

std::vector<HeldPart> Ranks::splitOver(std::span<const Claim> claims, const Watch& watch) {
  if (!control_ || !processes_) needOneRank(watch.op);
  std::vector<Claim> all(static_cast<std::size_t>(size_));
  exchange(claims.data(), all.data(), sizeof(Claim), watch);
  const std::vector<PartPlan> plans = planParts(all, *processes_);
  const int process = control_->heldRanks()[0];
  int rounds = 0;
  for (const PartPlan& plan : plans) rounds = std::max(rounds, plan.round + 1);
  std::map<int, std::unique_ptr<Communicator>> controls;
  for (int round = 0; round < rounds; ++round) {
    int color = -1;
    int place = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (plans[i].round != round || plans[i].placeOf(process) < 0) continue;
      color = static_cast<int>(i);
      place = plans[i].placeOf(process);
    }
    auto control = control_->split(color, place, {.timeoutMs = watch.leftMs()});
    if (color >= 0) controls[color] = std::move(control);
  }
  // In the same order on every process, which prevents deadlock.
  std::vector<HeldPart> parts;
  for (auto& [index, control] : controls) {
    const PartPlan& plan = plans[static_cast<std::size_t>(index)];
    std::vector<cuda::Device*> devices;
    for (const int old : plan.before[static_cast<std::size_t>(plan.placeOf(process))]) {
      devices.push_back(devices_[static_cast<std::size_t>(
          std::find(ranks_.begin(), ranks_.end(), old) - ranks_.begin())]);
    }
    Options own = options_;
    own.timeoutMs = watch.leftMs();
    parts.push_back(
        {plan.color, joinPart(std::move(control), Processes(plan.ranks), std::move(devices), own)});
  }
  return parts;
}

}  // namespace gradlink::nccl

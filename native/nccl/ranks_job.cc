// What ranks of several processes settle with one another before the library moves anything, and
// the ways into a communicator.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/call_differences.h"
#include "cuda/memory.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// How long after a deadline the others are asked whether they are there.
constexpr double kAnswerMs = 1000;

/// What a rank is about to do, as the others compare it.
struct Announcement {
  ShapeOnWire shape;
  std::uint64_t launches = 0;
  /// Of all launches after the first.
  std::uint64_t rest = 0;
  std::uint64_t scaled = 0;

  bool operator==(const Announcement&) const = default;
};
static_assert(std::has_unique_object_representations_v<Announcement>);

Announcement announce(const Launch& launch) {
  return {.shape = ShapeOnWire(launch.shape), .scaled = !launch.scales.empty()};
}

Announcement announce(std::span<const Launch> launches) {
  Announcement all;
  std::uint64_t rest = 14695981039346656037u;  // FNV-1a
  for (std::size_t i = 1; i < launches.size(); ++i) {
    unsigned char bytes[sizeof(Announcement)];
    const Announcement one = announce(launches[i]);
    std::memcpy(bytes, &one, sizeof(one));
    for (const unsigned char byte : bytes) rest = (rest ^ byte) * 1099511628211u;
  }
  if (!launches.empty()) all = announce(launches.front());
  all.launches = launches.size();
  all.rest = rest;
  return all;
}

std::string textOf(const Announcement& a) {
  std::string text = describe(a.shape.shape());
  if (a.scaled != 0) text += " with scales";
  if (a.launches > 1) text += " and " + std::to_string(a.launches - 1) + " more";
  return text;
}

/// The library tells duplicates by a general error; here it is known which they are.
Error explained(Error error, std::span<const int> gpus) {
  std::set<int> seen;
  for (const int gpu : gpus) {
    if (seen.insert(gpu).second || error.code != ErrorCode::invalidArgument) continue;
    Error better(error.code,
                 std::string(error.what()) + ". gpu:" + std::to_string(gpu) +
                     " was given to several ranks, and this NCCL takes one rank a GPU: use "
                     "distinct GPUs, or a store of type device, which needs none (NCCL 2.30.3 and "
                     "newer take two with NCCL_MULTI_RANK_GPU_ENABLE=1)");
    return better.stillUsable();
  }
  return error;
}

std::unique_ptr<NcclCommunicator> meet(HeldRanks held, std::span<const UniqueId> ids,
                                       const Options& options) {
  return std::make_unique<Ranks>(std::move(held), ids, options);
}

void checkSize(int rank, int size) {
  if (size < 1) throw misuse("join", "size must be 1 or more, got " + std::to_string(size));
  if (rank < 0 || rank >= size) {
    throw misuse("join",
                 "rank must be 0.." + std::to_string(size - 1) + ", got " + std::to_string(rank));
  }
}

/// Ranks of large worlds meet at several ids, which spares one process the connections of all.
std::vector<UniqueId> shareIdsOver(Communicator& control, const Options& options,
                                   double timeoutMs) {
  const int size = control.size();
  const int rank = control.heldRanks()[0];
  const bool several = Library::get().commInitRankScalable != nullptr;
  const int count = several ? (size + options.ranksOfId - 1) / options.ranksOfId : 1;
  UniqueId own{};
  const void* const in[] = {own.data()};
  if (count == 1) {
    if (rank == 0) own = makeUniqueId();
    void* const out[] = {own.data()};
    control.broadcast({in, out}, own.size(), DType::uint8, 0, {.timeoutMs = timeoutMs});
    return {own};
  }
  // Spread over the ranks, and so over the hosts.
  const auto makerOf = [&](int id) {
    return static_cast<int>(static_cast<std::int64_t>(id) * size / count);
  };
  std::vector<UniqueId> all(static_cast<std::size_t>(size));
  for (int id = 0; id < count; ++id) {
    if (makerOf(id) == rank) own = makeUniqueId();
  }
  void* const out[] = {all.data()};
  control.allGather({in, out}, own.size(), DType::uint8, {.timeoutMs = timeoutMs});
  std::vector<UniqueId> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int id = 0; id < count; ++id) ids.push_back(all[static_cast<std::size_t>(makerOf(id))]);
  return ids;
}

std::uint64_t digestOf(const Announcement& announcement) {
  unsigned char bytes[sizeof(Announcement)];
  std::memcpy(bytes, &announcement, sizeof(announcement));
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a
  for (const unsigned char byte : bytes) digest = (digest ^ byte) * 1099511628211u;
  return digest;
}

}  // namespace

// Ranks that have agreed on the same calls so far decide alike.
void Ranks::agreeOnce(std::span<const Launch> launches, const Watch& watch) {
  if (options_.check == Check::never) return;
  const bool once = options_.check == Check::first;
  const std::uint64_t digest = once ? digestOf(announce(launches)) : 0;
  if (once && agreed_.contains(digest)) return;
  agree(launches, watch);
  if (once) agreed_.insert(digest);
}

void Ranks::agree(std::span<const Launch> launches, const Watch& watch) {
  if (!control_) return;
  const Announcement own = announce(launches);
  std::vector<Announcement> all(static_cast<std::size_t>(size_));
  exchange(&own, all.data(), sizeof(own), watch);
  if (std::all_of(all.begin(), all.end(), [&](const Announcement& a) { return a == own; })) return;
  // All ranks see the same and throw; nothing was launched.
  CallGroups groups;
  const std::string first = textOf(all.front());
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::string call = textOf(all[r]);
    if (call == first && !(all[r] == all.front())) call += " that differ from rank 0's";
    groups.add(static_cast<int>(r), call);
  }
  throw differentCalls(watch.op, groups);
}

// The library does not tell whom it waits for. Whoever waits as this rank does comes to the
// barrier; who is somewhere else is as late as one that is gone.
Error Ranks::withSilent(const Error& error) {
  if (!control_ || error.code != ErrorCode::timeout || error.rank >= 0) return error;
  try {
    control_->barrier({.timeoutMs = kAnswerMs});
  } catch (const Error& silent) {
    if (silent.rank < 0) return error;
    Error better(error.code, std::string(error.what()) + "; rank " + std::to_string(silent.rank) +
                                 " does not answer the others (" + silent.what() + ")");
    return better.withRank(silent.rank).withOp(error.op);
  }
  return error;
}

void Ranks::exchange(const void* own, void* all, std::size_t bytes, const Watch& watch) {
  if (control_) {
    const void* const in[] = {own};
    void* const out[] = {all};
    try {
      control_->allGather({in, out}, bytes, DType::uint8, {.timeoutMs = watch.leftMs()});
    } catch (const Error& error) {
      Error ours(error.code, std::string(watch.op) + ": as the ranks agree on it: " + error.what());
      ours.usable = error.usable;  // where they made different calls, on all of them
      throw ours.withRank(error.rank).withOp(watch.op);
    }
    return;
  }
  cuda::Stream& stream = *streams_.front();
  const std::size_t needed = (static_cast<std::size_t>(size_) + 1) * bytes;
  if (exchanged_.bytes() < needed) exchanged_ = cuda::DeviceMemory(*devices_.front(), needed);
  auto* gathered = static_cast<char*>(exchanged_.data());
  char* mine = gathered + static_cast<std::size_t>(size_) * bytes;
  stream.copy(mine, own, bytes);
  const void* const in[] = {mine};
  void* const out[] = {gathered};
  const Launch gather{{Kind::allGather, DType::uint8, ReduceOp::sum, 0, bytes}, {in, out}};
  launch({&gather, 1}, streams_, watch);
  core_->comms.finish(watch, streams_);
  stream.copy(all, gathered, static_cast<std::size_t>(size_) * bytes);
  stream.synchronize();
}

std::vector<UniqueId> Ranks::shareIds(const Watch& watch) {
  if (holdsAll()) return {makeUniqueId()};
  if (control_) return shareIdsOver(*control_, options_, watch.leftMs());
  UniqueId own{};
  if (ranks_.front() == 0) own = makeUniqueId();
  std::vector<UniqueId> all(static_cast<std::size_t>(size_));
  exchange(own.data(), all.data(), sizeof(UniqueId), watch);
  return {all.front()};
}

void Ranks::barrier(const CallOptions& options) {
  guarded("barrier", options, [&](const Watch& watch) {
    // Nothing is pending between calls: where all ranks are held, all are here.
    if (holdsAll()) return;
    if (control_) return agree(Shape{}, watch);
    const char nothing = 0;
    std::vector<char> all(static_cast<std::size_t>(size_));
    exchange(&nothing, all.data(), 1, watch);
  });
}

std::unique_ptr<Communicator> Ranks::split(int color, int key, const CallOptions& options) {
  std::unique_ptr<Communicator> part;
  guarded("split", options, [&](const Watch& watch) {
    needOneRank(watch.op);
    agree(Shape{.kind = Kind::split}, watch);
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
    // The first of each part makes its id; all ids travel together.
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

std::unique_ptr<NcclCommunicator> openLocal(std::span<const int> gpus, const Options& options) {
  if (gpus.empty()) throw misuse("openLocal", "expected at least one GPU, got none");
  Library::get();
  HeldRanks held;
  held.size = static_cast<int>(gpus.size());
  held.ranks.resize(gpus.size());
  std::iota(held.ranks.begin(), held.ranks.end(), 0);
  for (const int gpu : gpus) held.devices.push_back(&cuda::Device::get(gpu));
  try {
    return meet(std::move(held), std::array<UniqueId, 1>{makeUniqueId()}, options);
  } catch (const Error& error) {
    throw explained(error, gpus);
  }
}

std::unique_ptr<NcclCommunicator> join(const UniqueId& id, int rank, int size, int gpu,
                                       const Options& options) {
  checkSize(rank, size);
  Library::get();
  return meet({{rank}, {&cuda::Device::get(gpu)}, size, nullptr}, {&id, 1}, options);
}

std::unique_ptr<NcclCommunicator> join(std::unique_ptr<Communicator> control, int gpu,
                                       const Options& options) {
  if (!control || control->heldRanks().size() != 1) {
    throw misuse("join", "the control communicator must hold one rank");
  }
  HeldRanks held{{control->heldRanks()[0]}, {}, control->size(), nullptr};
  std::vector<UniqueId> ids;
  try {
    held.devices.push_back(&cuda::Device::get(gpu));
    Library::get();
    ids = shareIdsOver(*control, options, options.timeoutMs);
  } catch (const Error& error) {
    // The others wait for this rank.
    control->abort(error.what());
    throw;
  }
  held.control = std::move(control);
  return meet(std::move(held), ids, options);
}

}  // namespace gradlink::nccl

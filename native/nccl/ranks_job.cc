// Agreement between ranks of several processes before the library moves anything.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/agreement.h"
#include "cuda/memory.h"
#include "nccl/nccl_rendezvous.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// How long to ask after a deadline which ranks are there.
constexpr double kAnswerMs = 1000;

struct Announcement {
  ShapeOnWire shape;
  std::uint64_t launches = 0;
  /// The digest of all launches after the first.
  std::uint64_t rest = 0;
  std::uint64_t scaled = 0;
  /// Where its arrays are in registered memory: RegisteredPlaces.
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  /// For allocRegistered: bytes + 1, whether they will be registered, whether they are missing.
  std::uint64_t asks = 0;
  std::uint64_t registers = 0;
  std::uint64_t refused = 0;

  bool operator==(const Announcement&) const = default;
};
static_assert(std::has_unique_object_representations_v<Announcement>);

/// For exchanges with other processes. The ranks of this process have equal places: checkPlaces().
Announcement announce(const Launch& launch, const RegisteredPieces& registered) {
  Announcement one{.shape = ShapeOnWire(launch.shape), .scaled = !launch.scales.empty()};
  if (launch.buffers.in.empty() || launch.buffers.out.empty()) return one;
  const RegisteredPlaces places =
      registered.placesOf(0, launch.shape.kind, launch.buffers.in[0], launch.buffers.out[0]);
  one.in = places.in;
  one.out = places.out;
  return one;
}

constexpr std::uint64_t kNothing = 14695981039346656037u;

/// Extends the FNV-1a hash `digest` by an announcement.
std::uint64_t digestOf(const Announcement& announcement, std::uint64_t digest = kNothing) {
  unsigned char bytes[sizeof(Announcement)];
  std::memcpy(bytes, &announcement, sizeof(announcement));
  for (const unsigned char byte : bytes) digest = (digest ^ byte) * 1099511628211u;
  return digest;
}

Announcement announce(std::span<const Launch> launches, const RegisteredPieces& registered) {
  Announcement all;
  if (!launches.empty()) all = announce(launches.front(), registered);
  all.launches = launches.size();
  all.rest = kNothing;
  for (std::size_t i = 1; i < launches.size(); ++i) {
    all.rest = digestOf(announce(launches[i], registered), all.rest);
  }
  return all;
}

std::string describe(const Announcement& a) {
  if (a.asks != 0) {
    return "allocRegistered of " + std::to_string(a.asks - 1) + " bytes" +
           (a.registers != 0 ? "" : ", not to be registered");
  }
  std::string text = describe(a.shape);
  if (a.scaled != 0) text += " with scales";
  if (a.launches > 1) text += " and " + std::to_string(a.launches - 1) + " more";
  return text;
}

/// All ranks see the same and throw; nothing was launched.
template <class NamesOfAll>
void checkAnnounced(const char* op, std::span<const Announcement> all, int self,
                    const NamesOfAll& namesOfAll) {
  const Announcement& first = all.front();
  const auto elsewhere = std::ranges::find_if_not(all, [&](const auto& a) { return a == first; });
  if (elsewhere == all.end()) return;
  const bool onlyPlaces = std::ranges::all_of(all, [&](Announcement a) {
    a.in = first.in;
    a.out = first.out;
    return a == first;
  });
  if (!onlyPlaces) checkSame(op, all, self, namesOfAll);
  const int rank = static_cast<int>(elsewhere - all.begin());
  throw harmless(ErrorCode::mismatch, op, elsewhereText(0, rank)).withRank(rank);
}

}  // namespace

// Ranks that have agreed on the same calls so far decide alike.
void Ranks::agreeOnce(std::span<const Launch> launches, const Watch& watch) {
  if (options_.check == Check::never) return;
  const bool once = options_.check == Check::first;
  const std::uint64_t digest = once ? digestOf(announce(launches, core_->registered)) : 0;
  if (once && agreed_.contains(digest)) return;
  agree(launches, watch);
  if (once) agreed_.insert(digest);
}

void Ranks::agree(std::span<const Launch> launches, const Watch& watch) {
  if (!control_) return;
  const std::vector<Announcement> all = exchangeRecords(
      exchangeWithin(watch), size_, announce(launches, core_->registered), ranks_.size());
  checkAnnounced(watch.op, all, ranks_.front(), [&] { return namesOfAll(watch); });
}

std::vector<CallName> Ranks::namesOfAll(const Watch& watch) {
  Watch names = watch;
  names.deadline = deadlineOfNames(watch.deadline);
  return exchangeRecords(exchangeWithin(names), size_, CallName(watch.name), ranks_.size());
}

// A rank without memory would leave the others waiting in the registration.
void Ranks::agreeOnMemory(std::size_t bytes, bool registers, const std::optional<Error>& failed,
                          const Watch& watch) {
  if (!holdsAll()) {
    Announcement own;
    own.asks = bytes + 1;
    own.registers = registers ? 1 : 0;
    own.refused = failed ? 1 : 0;
    std::vector<Announcement> all =
        exchangeRecords(exchangeWithin(watch), size_, own, ranks_.size());
    int without = -1;
    for (std::size_t r = all.size(); r-- > 0;) {
      if (std::exchange(all[r].refused, 0) != 0) without = static_cast<int>(r);
    }
    checkAnnounced(watch.op, all, ranks_.front(), [&] { return namesOfAll(watch); });
    if (without >= 0 && !failed) {
      Error error = harmless(ErrorCode::outOfMemory, watch.op,
                             "rank " + std::to_string(without) + " has no memory for its part");
      throw error.withRank(without);
    }
  }
  if (!failed) return;
  Error own = *failed;
  throw own.withOp(watch.op).stillUsable();
}

// The library does not report whom it waits for. Ranks that wait like this one come to the barrier.
// A rank that does not is gone, or is in another call.
Error Ranks::withSilent(const Error& error) {
  if (!control_ || error.code != ErrorCode::timeout || error.rank >= 0) return error;
  try {
    control_->barrier({.timeoutMs = kAnswerMs});
  } catch (const Error& silent) {
    const int rank = silent.code == ErrorCode::mismatch ? silent.other : silent.rank;
    if (rank < 0) return error;
    Error better(error.code, std::string(error.what()) + "; " + whoHolds(rank) +
                                 " does not answer the others (" + silent.what() + ")");
    return better.withRank(rank).withOp(error.op);
  }
  return error;
}

void Ranks::exchange(const void* own, void* all, std::size_t bytes, const Watch& watch) {
  if (holdsAll()) {
    std::memcpy(all, own, ranks_.size() * bytes);
    return;
  }
  if (control_) {
    try {
      gatherRows(*control_, processes_, own, all, bytes, {watch.leftMs(), watch.name});
    } catch (const Error& error) {
      Error ours(error.code,
                 std::string(watch.op) + ": while the ranks agreed on it: " + error.what());
      ours.usable = error.usable;  // all ranks threw, as their calls differ
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
  const auto inFlight = core_->comms.inFlight(watch);
  launch({&gather, 1}, streams_, watch);
  core_->comms.finish(watch, streams_);
  stream.copy(all, gathered, static_cast<std::size_t>(size_) * bytes);
  stream.synchronize();
}

std::vector<UniqueId> Ranks::shareIds(const Watch& watch) {
  if (holdsAll()) return {makeUniqueId()};
  if (control_) return shareIdsOver(*control_, size_, options_, watch.leftMs());
  UniqueId own{};
  if (ranks_.front() == 0) own = makeUniqueId();
  std::vector<UniqueId> all(static_cast<std::size_t>(size_));
  exchange(own.data(), all.data(), sizeof(UniqueId), watch);
  return {all.front()};
}

void Ranks::barrier(const CallOptions& options) {
  guarded("barrier", options, [&](const Watch& watch) {
    // Nothing is pending between calls: if all ranks are held, all are here.
    if (holdsAll()) return;
    if (control_) return agree(Shape{}, watch);
    const char nothing = 0;
    std::vector<char> all(static_cast<std::size_t>(size_));
    exchange(&nothing, all.data(), 1, watch);
  });
}

}  // namespace gradlink::nccl

#include "core/joinable.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/agreement.h"
#include "core/counted.h"
#include "core/deadline.h"
#include "core/kernels/identity.h"
#include "core/window.h"
#include "core/wire.h"

namespace gradlink {
namespace {

/// Names of calls without a kind; "openWindow" is the longest.
constexpr std::size_t kNameBytes = 16;

CallOptions remaining(CallOptions options, double timeoutMs, Deadline::Clock::time_point begin) {
  const double whole = options.timeoutMs < 0 ? timeoutMs : options.timeoutMs;
  // A timeout of 0 would fail even if the other ranks are ready.
  options.timeoutMs = std::max(whole - secondsSince(begin) * 1e3, 1.0);
  return options;
}

}  // namespace

struct JoinableCommunicator::Announcement {
  Announcement() = default;
  explicit Announcement(const Shape& call) : does(Does::runs), shape(call) {}
  explicit Announcement(Does what) : does(what) {}
  explicit Announcement(const char* call) : does(Does::other) {
    std::strncpy(name, call, kNameBytes - 1);
  }

  bool isKnown(int size) const {
    return does <= Does::joined && shape.isKnown() && shape.root >= 0 && shape.root < size &&
           name[kNameBytes - 1] == 0;
  }
  bool isJoined() const { return does == Does::joins || does == Does::joined; }
  bool operator==(const Announcement& o) const {
    return does == o.does && shape == o.shape && std::memcmp(name, o.name, kNameBytes) == 0;
  }
  std::string text() const { return does == Does::runs ? gradlink::describe(shape) : op(); }
  friend std::string describe(const Announcement& announced) { return announced.text(); }
  const char* op() const {
    if (does == Does::runs) return nameOf(kind());
    return isJoined() ? "join" : name;
  }
  /// Whether the call's result is defined without the joined ranks' input.
  bool goesOn() const {
    if (does != Does::runs) return false;
    if (isCounted(kind())) return sendsWhole(kind());
    if (!isPlain(kind())) return false;
    const CollectiveTraits& call = traitsOf(kind());
    return call.in != Blocks::each && call.in != Blocks::eachAtRoot && call.out != Blocks::each &&
           call.out != Blocks::eachAtRoot;
  }
  bool isRooted() const { return does == Does::runs && hasRoot(kind()); }
  Kind kind() const { return static_cast<Kind>(shape.kind); }

  Does does = Does::joined;
  ShapeOnWire shape;
  char name[kNameBytes] = {};
};

JoinableCommunicator::JoinableCommunicator(std::shared_ptr<Communicator> inner)
    : ForwardingCommunicator(std::move(inner)) {}

template <class Record>
std::vector<Record> JoinableCommunicator::exchange(const char* op, const Record& own,
                                                   const CallOptions& options) {
  try {
    return exchangeRecords(exchangeOver(inner(), options), size(), own);
  } catch (const Error& error) {
    // The caller made another call than the one that failed.
    std::string text = error.what();
    const std::string prefix = std::string(nameOf(Kind::allGather)) + ": ";
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    if (error.code == ErrorCode::mismatch) {
      text +=
          ". Calls of a joinable communicator begin with such an allGather: setJoinable() is for "
          "all ranks or none";
    }
    Error ours(error.code, std::string(op) + ": " + text);
    ours.other = error.other;
    ours.usable = error.usable;
    throw ours.withRank(error.rank).withOp(op);
  }
}

std::vector<JoinableCommunicator::Announcement> JoinableCommunicator::exchangeAnnouncements(
    const Announcement& own, const CallOptions& options) {
  const char* const op = own.op();
  std::vector<Announcement> all = exchange(op, own, options);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].isKnown(size())) continue;
    throw Error(ErrorCode::mismatch, std::string(op) + ": rank " + std::to_string(r) +
                                         " announced something that is not a call")
        .withRank(static_cast<int>(r))
        .withOp(op);
  }
  return all;
}

CallOptions JoinableCommunicator::meet(const Announcement& own, const CallOptions& options) {
  const auto begin = Deadline::Clock::now();
  const std::vector<Announcement> all = exchangeAnnouncements(own, options);
  std::vector<Announcement> calls;
  std::vector<int> callers;
  std::vector<int> joined;
  for (std::size_t r = 0; r < all.size(); ++r) {
    (all[r].isJoined() ? joined : callers).push_back(static_cast<int>(r));
    if (!all[r].isJoined()) calls.push_back(all[r]);
  }
  const auto namesOfAll = [&] { return exchange(own.op(), CallName(options.name), options); };
  checkSame<Announcement>(own.op(), calls, rank(), namesOfAll, callers);
  const CallOptions left = remaining(options, timeoutMs(), begin);
  if (joined.empty()) return left;
  if (!own.goesOn()) {
    throw unsupported(own.op(), listOfRanks(joined) +
                                    " called join() and have no more data, which this call needs. "
                                    "Until all have joined the calls are allReduce, reduce, "
                                    "broadcast, scan, exscan, barrier, allGatherV and gatherV");
  }
  const int root = own.shape.root;
  if (own.isRooted() && all[static_cast<std::size_t>(root)].isJoined()) {
    throw unsupported(own.op(), "the root, rank " + std::to_string(root) +
                                    ", called join() and has no more data. Choose a root that has "
                                    "not joined");
  }
  return left;
}

int JoinableCommunicator::join(const CallOptions& options) {
  for (Does mine = Does::joins;; mine = Does::joined) {
    const auto begin = Deadline::Clock::now();
    const Announcement own(mine);
    const std::vector<Announcement> all = exchangeAnnouncements(own, options);
    const auto active = std::find_if(all.begin(), all.end(),
                                     [](const Announcement& one) { return !one.isJoined(); });
    if (active == all.end()) {
      scratch_ = {};
      const auto last = std::find_if(all.rbegin(), all.rend(), [](const Announcement& one) {
        return one.does == Does::joins;
      });
      return static_cast<int>(all.rend() - last) - 1;
    }
    // A failed inner call is the other ranks' affair: they continue or handle it.
    const bool isOne = std::all_of(all.begin(), all.end(), [&](const Announcement& one) {
      return one.isJoined() || one == *active;
    });
    if (!isOne) exchange(own.op(), CallName(), options);
    const auto root = static_cast<std::size_t>(active->shape.root);
    if (!isOne || !active->goesOn() || (active->isRooted() && all[root].isJoined())) continue;
    try {
      takePart(*active, remaining(options, timeoutMs(), begin));
    } catch (const Error& error) {
      if (!error.usable) throw;
    } catch (const std::exception& error) {
      abort(std::string("join() of rank ") + std::to_string(rank()) + " failed: " + error.what());
      throw;
    }
  }
}

void JoinableCommunicator::takePart(const Announcement& call, const CallOptions& options) {
  const Shape shape = call.shape.shape();
  if (isCounted(shape.kind)) {
    Counted empty;
    empty.parts.resize(1);
    empty.parts[0].sent.resize(static_cast<std::size_t>(size()));
    empty.makePlace = [&](std::size_t, std::size_t elements) {
      scratch_.resize(elements * sizeOf(shape.dtype));
      return scratch_.data();
    };
    return inner().counted(shape, empty, options);
  }
  const std::size_t bytes = shape.count * sizeOf(shape.dtype);
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  if (hasOp(shape.kind)) fillIdentity(scratch_.data(), shape.count, shape.dtype, shape.op);
  const bool reads = inBlocks(shape, size(), rank()) > 0;
  const bool writes = outBlocks(shape, size(), rank()) > 0;
  const void* const in[] = {reads ? scratch_.data() : nullptr};
  void* const out[] = {writes ? scratch_.data() : nullptr};
  if (shape.kind == Kind::barrier) return inner().collective(shape, {}, options);
  inner().collective(shape, {in, out}, options);
}

void JoinableCommunicator::run(const Call& call) {
  const Kind kind = call.shape.kind;
  if (isMessage(kind) || kind == Kind::neighborAllGather || kind == Kind::pairGossip) {
    return inner().run(call);
  }
  Call met = call;
  met.options = meet(Announcement(call.shape), call.options);
  inner().run(met);
}

std::unique_ptr<Communicator> JoinableCommunicator::split(int color, int key,
                                                          const CallOptions& o) {
  return inner().split(color, key, meet(Announcement("split"), o));
}

std::unique_ptr<Wire> JoinableCommunicator::openWire(const CallOptions& o) {
  return inner().openWire(meet(Announcement("openWire"), o));
}

std::unique_ptr<Window> JoinableCommunicator::openWindow(const WindowSpec& spec,
                                                         const CallOptions& o) {
  return inner().openWindow(spec, meet(Announcement("openWindow"), o));
}

}  // namespace gradlink

// How MPI communicators begin and end: joining by name, splitting, opening wires, closing.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "core/memory/free_memory.h"
#include "core/wire.h"
#include "messages/message_wire.h"
#include "messages/rank_communicator.h"
#include "messages/rendezvous.h"

namespace gradlink::messages {
namespace {

/// GRADLINK_RANKS_PER_NODE, or 0.
int ranksPerNode() {
  const char* text = std::getenv("GRADLINK_RANKS_PER_NODE");
  if (text == nullptr || text[0] == '\0') return 0;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::invalidArgument,
                std::string("GRADLINK_RANKS_PER_NODE must be a whole number of at least 1, got '") +
                    text + "'")
        .stillUsable();
  }
  return static_cast<int>(value);
}

}  // namespace

const std::vector<int>& RankCommunicator::nodes(const CallOptions& o) {
  if (!nodes_.empty()) return nodes_;
  guarded("nodes", [&] {
    Wait wait(link_, "nodes", timeoutOf(o), Wait::Kind::agreement);
    // All ranks meet first: MPI itself has no deadlines.
    agreement_.meet(kNodesCall, {}, wait);
    std::int32_t lowest = 0;
    if (const int each = ranksPerNode(); each > 0) {
      lowest = rank() / each * each;
    } else {
      checkMpi("find the ranks of this node", shim().lowestOfNode(link_.comm(), &lowest));
    }
    agreement_.meet(kNodesCall, std::as_bytes(std::span(&lowest, 1)), wait);
    std::vector<int> of(static_cast<std::size_t>(size()));
    int nodes = 0;
    for (int r = 0; r < size(); ++r) {
      std::int32_t first = 0;
      std::memcpy(&first, agreement_.payload(r).data(), sizeof(first));
      of[static_cast<std::size_t>(r)] = first == r ? nodes++ : of[static_cast<std::size_t>(first)];
    }
    nodes_ = std::move(of);
  });
  return nodes_;
}

std::unique_ptr<MpiCommunicator> RankCommunicator::splitRanks(int color, int key,
                                                              const CallOptions& o) {
  return guarded("split", [&]() -> std::unique_ptr<MpiCommunicator> {
    Wait wait(link_, "split", timeoutOf(o), Wait::Kind::agreement);
    const std::int32_t mine[2] = {color, key};
    Shape shape;
    shape.kind = Kind::split;
    agreement_.meet(shape, std::as_bytes(std::span(mine)), wait);
    std::vector<std::pair<int, int>> members;  // key, old rank
    for (int r = 0; r < size(); ++r) {
      std::int32_t theirs[2];
      std::memcpy(theirs, agreement_.payload(r).data(), sizeof(theirs));
      if (theirs[0] == color) members.emplace_back(theirs[1], r);
    }
    CommHandle made;
    Runtime::get().sweep();
    if (color < 0) return nullptr;
    std::sort(members.begin(), members.end());
    std::vector<int> ranks;
    std::vector<int> world;
    for (const auto& [theirKey, rank] : members) {
      ranks.push_back(rank);
      world.push_back(worldRanks_[static_cast<std::size_t>(rank)]);
    }
    checkMpi("split", shim().createGroup(link_.comm(), ranks.data(), static_cast<int>(ranks.size()),
                                         0, &made));
    return std::make_unique<RankCommunicator>(made, std::move(world), timeoutMs_);
  });
}

std::unique_ptr<Communicator> RankCommunicator::split(int color, int key, const CallOptions& o) {
  return splitRanks(color, key, o);
}

std::unique_ptr<MpiCommunicator> splitMpi(MpiCommunicator& from, int color, int key,
                                          const CallOptions& o) {
  return static_cast<RankCommunicator&>(from).splitRanks(color, key, o);
}

std::unique_ptr<Wire> RankCommunicator::openWire(const CallOptions& o) {
  return guarded("openWire", [&]() -> std::unique_ptr<Wire> {
    Wait wait(link_, "openWire", timeoutOf(o), Wait::Kind::agreement);
    agreement_.meet(kOpenWireCall, {}, wait);
    CommHandle made;
    Runtime::get().sweep();
    checkMpi("open a wire", shim().duplicate(link_.comm(), &made));
    return std::make_unique<MpiWire>(made);
  });
}

std::unique_ptr<Window> RankCommunicator::openWindow(const WindowSpec& spec, const CallOptions& o) {
  return windows_.open(*this, spec, o);
}

void* RankCommunicator::allocShared(std::size_t bytes) {
  if (closed_.load()) {
    throw Error(ErrorCode::closed, "allocShared: the communicator is closed").withOp("allocShared");
  }
  const std::size_t rounded = std::max<std::size_t>((bytes + 63) / 64 * 64, 64);
  if (rounded < bytes) {
    throw harmless(ErrorCode::outOfMemory, "allocShared",
                   std::to_string(bytes) + " bytes are more than memory can hold");
  }
  requireMemory("allocShared", rounded);
  std::unique_ptr<std::byte, void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, rounded)), std::free);
  if (memory == nullptr) {
    throw harmless(ErrorCode::outOfMemory, "allocShared",
                   "no memory for " + std::to_string(bytes) + " bytes");
  }
  std::memset(memory.get(), 0, rounded);
  std::lock_guard lock(memoryMutex_);
  void* const at = memory.get();
  memory_.emplace(at, std::move(memory));
  return at;
}

void RankCommunicator::freeShared(void* memory) {
  std::lock_guard lock(memoryMutex_);
  memory_.erase(memory);
}

void RankCommunicator::abort(const std::string& reason) {
  if (closed_.load(std::memory_order_acquire) || !Runtime::get().running()) return;
  const InUse inUse("abort");
  link_.failAll(ErrorCode::aborted, rank(), "abort",
                "the communicator was aborted by rank " + std::to_string(rank()) + ": " + reason);
}

void RankCommunicator::fail(const Error& error) {
  if (closed_.load(std::memory_order_acquire) || !Runtime::get().running()) return;
  const InUse inUse("fail");
  link_.failAll(error.code, error.rank, error.op, error.what());
}

void RankCommunicator::follow(Communicator& above) {
  link_.follow(&static_cast<RankCommunicator&>(above).link_);
}

void RankCommunicator::check(const char* op) {
  guarded(op, [&] {
    link_.listen();
    link_.check(op);
  });
}

void RankCommunicator::leave() {
  if (closed_.load(std::memory_order_acquire) || !Runtime::get().running()) return;
  const InUse inUse("leave");
  link_.leave();
}

void RankCommunicator::close() {
  if (closed_.exchange(true)) return;
  windows_.close();
  if (!Runtime::get().running()) return;
  const InUse inUse("close");
  link_.close(messages_.idle());
}

std::unique_ptr<MpiCommunicator> join(const JoinOptions& options) {
  const Deadline deadline = Deadline::in(options.timeoutMs);
  const Place& place = Runtime::get().start(options.timeoutMs, options.cancelled);
  std::vector<int> ranks = options.ranks;
  if (ranks.empty()) {
    for (int r = 0; r < place.size; ++r) ranks.push_back(r);
  }
  const bool ascending =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (!ascending || ranks.front() < 0 || ranks.back() >= place.size ||
      !std::binary_search(ranks.begin(), ranks.end(), place.rank)) {
    throw misuse("join", "expected ascending ranks of 0.." + std::to_string(place.size - 1) +
                             " with this process's own, " + std::to_string(place.rank) +
                             ", among them");
  }
  const InUse inUse("join");
  Runtime::get().sweep();
  const CommHandle made = meet(options.name, ranks, deadline, options.cancelled);
  return std::make_unique<RankCommunicator>(made, std::move(ranks), options.timeoutMs);
}

}  // namespace gradlink::messages

#include "shm/rendezvous/rendezvous.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "core/memory/cache.h"

namespace gradlink::shm {
namespace {

constexpr int kSliceMs = 50;

std::string quoted(const JoinOptions& options) { return "join \"" + options.name + "\": "; }

std::string strangersText(Strangers strangers) {
  std::string text;
  if (strangers.connections > 0) {
    text += ". Processes without the job's secret made " + std::to_string(strangers.connections) +
            " connections to this rendezvous";
  }
  if (strangers.addresses > 0) {
    text += ". Other users' processes hold or block " + std::to_string(strangers.addresses) +
            " of this rendezvous's addresses";
  }
  return strangers.any() ? text + ". They may have kept ranks away: see who else runs on this host"
                         : text;
}

}  // namespace

Membership makePrivateSegment(int size, std::size_t slotBytes) {
  const std::size_t slot = Segment::roundSlot(size, slotBytes);
  const std::size_t bytes = Segment::bytesFor(size, slot);
  // Not the heap: most of it is never touched and then costs nothing.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw systemError("join: cannot map the ranks' common memory", errno);
  Membership membership;
  membership.memory = std::shared_ptr<void>(memory, [bytes](void* m) { munmap(m, bytes); });
  membership.segment = Segment(memory, size, slot);
  membership.segment.header().secondCacheBytes =
      static_cast<std::uint32_t>(secondLevelCacheBytes());
  membership.deferredUnmaps = std::make_shared<DeferredUnmaps>();
  return membership;
}

Membership meetNobody(const JoinOptions& options) {
  return makePrivateSegment(1, options.slotBytes);
}

Error missingRanks(const JoinOptions& options, const std::vector<int>& missing,
                   Strangers strangers) {
  std::string list;
  for (std::size_t i = 0; i < missing.size(); ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(missing[i]);
  return Error(ErrorCode::timeout,
               quoted(options) + "the deadline has passed and of " + std::to_string(options.size) +
                   " ranks these have not joined: " + (list.empty() ? "(unknown)" : list) +
                   ". Were all started, with the same job, name and size? timeoutMs sets the "
                   "deadline" +
                   strangersText(strangers))
      .withRank(missing.empty() ? -1 : missing.front())
      .withOp("join");
}

Error rankTakenTwice(const JoinOptions& options, int rank) {
  return Error(ErrorCode::mismatch, quoted(options) + "rank " + std::to_string(rank) +
                                        " joined twice; every rank of 0.." +
                                        std::to_string(options.size - 1) + " must join once")
      .withRank(rank)
      .withOp("join");
}

Error sizesDiffer(const JoinOptions& options, int rankA, int sizeA, int rankB, int sizeB) {
  return Error(ErrorCode::mismatch, quoted(options) + "rank " + std::to_string(rankA) +
                                        " says there are " + std::to_string(sizeA) +
                                        " ranks, rank " + std::to_string(rankB) + " says " +
                                        std::to_string(sizeB))
      .withRank(rankB)
      .withOp("join");
}

Error nameIsTaken(const JoinOptions& options, const std::string& holder) {
  return Error(ErrorCode::mismatch, quoted(options) + holder +
                                        ". Use a new name, or start the job again, "
                                        "with a secret of its own; see who else runs on this host")
      .withOp("join");
}

int pollSlice(Deadline deadline) {
  if (deadline.at() == Deadline::Clock::time_point::max()) return kSliceMs;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, kSliceMs));
}

Error joinCancelled(const JoinOptions& options) {
  return Error(ErrorCode::closed, quoted(options) + "given up before all ranks had come")
      .withOp("join");
}

}  // namespace gradlink::shm

#include "shm/meeting/meeting.h"

#include <sys/mman.h>

#include <cerrno>

namespace gradlink::shm {
namespace {

std::string quoted(const JoinOptions& options) { return "join \"" + options.name + "\": "; }

}  // namespace

Membership makePrivateSegment(int size, std::size_t slotBytes) {
  const std::size_t slot = Segment::roundSlot(size, slotBytes);
  const std::size_t bytes = Segment::bytesFor(size, slot);
  // Not the heap: most of it is never touched, and then costs nothing.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw systemError("join: cannot map the ranks' common memory", errno);
  Membership membership;
  membership.memory = std::shared_ptr<void>(memory, [bytes](void* m) { munmap(m, bytes); });
  membership.segment = Segment(memory, size, slot);
  membership.graveyard = std::make_shared<Graveyard>();
  return membership;
}

Membership meetNobody(const JoinOptions& options) {
  return makePrivateSegment(1, options.slotBytes);
}

Error missingRanks(const JoinOptions& options, const std::vector<int>& missing) {
  std::string list;
  for (std::size_t i = 0; i < missing.size(); ++i)
    list += (i == 0 ? "" : ", ") + std::to_string(missing[i]);
  return Error(ErrorCode::timeout,
               quoted(options) + "the deadline has passed and of " + std::to_string(options.size) +
                   " ranks these have not come: " + (list.empty() ? "(unknown)" : list) +
                   ". Were all started, with the same job, name and size? timeoutMs sets the "
                   "deadline")
      .withRank(missing.empty() ? -1 : missing.front())
      .withOp("join");
}

Error rankTakenTwice(const JoinOptions& options, int rank) {
  return Error(ErrorCode::mismatch, quoted(options) + "rank " + std::to_string(rank) +
                                        " came twice; every rank of 0.." +
                                        std::to_string(options.size - 1) + " must come once")
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
  return Error(ErrorCode::mismatch, quoted(options) + holder + " holds this name").withOp("join");
}

Error joinCancelled(const JoinOptions& options) {
  return Error(ErrorCode::closed, quoted(options) + "given up before all ranks had come")
      .withOp("join");
}

}  // namespace gradlink::shm

// Lets some ranks of a job find each other by name, in any order, and names a missing one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "messages/shim.h"

namespace gradlink::messages {

/// From rank to rank. Followed by the name, a zero byte, and the reason after a failure.
struct MeetingNote {
  /// here: a member has come. call: the leader (the lowest rank) knows. present: the member knows
  /// that, and from now on waits for the leader's decision.
  enum class Step : std::uint32_t { here, call, present, go, failed };

  Step step;
  std::int32_t code = 0;
  std::int32_t rank = -1;
  std::uint32_t reserved = 0;
  /// The member's attempt at this name: an attempt that gave up leaves notes behind.
  std::uint64_t attempt;
  /// The digest of the members that the sender knows.
  std::uint64_t members;
};
std::uint64_t digestOfMembers(const std::vector<int>& ranks);

/// Blocks until all of `ranks` (ascending, of the job, this process included) have come with this
/// name. The lowest decides for all, so no rank is left alone in an MPI call. Throws peerLost for a
/// rank that is gone, if the job outlives it.
CommHandle meet(const std::string& name, const std::vector<int>& ranks, Deadline deadline,
                const std::atomic<bool>* cancelled);

}  // namespace gradlink::messages

// A communicator one of whose ranks may run out of data before the others: it joins, and takes part
// in their calls without bringing anything until all ranks have joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/forwarding_communicator.h"

namespace gradlink {

/// Every collective begins with a small all-gather: who has joined, and what the others call. So
/// a rank that has joined knows what to take part in, and calls that differ move nothing. All ranks
/// are of this class, hold one rank each, and have their arrays in the memory of the host.
///
/// Messages, neighborAllGather and pairGossip are between the ranks that make them, and windows
/// stay apart: those go straight to the communicator behind.
class JoinableCommunicator final : public ForwardingCommunicator {
 public:
  explicit JoinableCommunicator(std::shared_ptr<Communicator> inner);

  /// The communicator that it stands before.
  Communicator& behind() const { return inner(); }

  /// Takes part in the others' calls until all ranks have joined. What it brings changes no result,
  /// except that averages are over all ranks.
  ///
  /// @param options - how long the others may take until their next call
  /// @returns the rank that joined last; of several at a time the highest
  int join(const CallOptions& options);

  void run(const Call& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) override;
  std::unique_ptr<Wire> openWire(const CallOptions& = {}) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions& = {}) override;

 private:
  /// What a rank does: a call of Communicator::run, or another.
  enum class Does : std::uint8_t { runs, other, joins, joined };
  /// What a rank says before a call.
  struct Told;

  /// Puts together what all ranks bring, before the call `op`.
  template <class Record>
  std::vector<Record> exchange(const char* op, const Record& own, const CallOptions& options);
  /// What all ranks do.
  std::vector<Told> exchangeTold(const Told& own, const CallOptions& options);
  /// Before a call of this rank.
  ///
  /// @returns the options with what is left of the time
  CallOptions meet(const Told& own, const CallOptions& options);
  /// In the others' call.
  void takePart(const Told& call, const CallOptions& options);
  int rank() const { return heldRanks()[0]; }

  /// Where what a rank that has joined brings and gets lies.
  std::vector<std::byte> scratch_;
};

}  // namespace gradlink

// A communicator whose ranks may run out of data at different times. A rank that joins takes part
// in the others' calls with neutral input until all have joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/forwarding_communicator.h"

namespace gradlink {

/// Every collective begins with a small all-gather of who has joined and what the others call, so
/// joined ranks know the call and mismatching calls move nothing. All ranks use this class, hold
/// one rank each and keep their arrays in host memory.
///
/// Messages, neighborAllGather, pairGossip and windows go straight to the inner communicator: they
/// concern only the ranks that make them.
class JoinableCommunicator final : public ForwardingCommunicator {
 public:
  explicit JoinableCommunicator(std::shared_ptr<Communicator> inner);

  Communicator& behind() const { return inner(); }

  /// Takes part in the others' calls until all ranks have joined. Its input is neutral, but
  /// averages count all ranks.
  ///
  /// @param options - the timeout for the others' next call @returns the rank that joined last; the
  /// highest of several
  int join(const CallOptions& options);

  void run(const Call& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) override;
  std::unique_ptr<Wire> openWire(const CallOptions& = {}) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions& = {}) override;

 private:
  /// What a rank announces: a call of Communicator::run, or another.
  enum class Does : std::uint8_t { runs, other, joins, joined };
  /// The announcement that precedes a call.
  struct Announcement;

  /// All-gathers the ranks' records before the call `op`.
  template <class Record>
  std::vector<Record> exchange(const char* op, const Record& own, const CallOptions& options);
  std::vector<Announcement> exchangeAnnouncements(const Announcement& own,
                                                  const CallOptions& options);
  /// Announces a call of this rank.
  ///
  /// @returns the options with the remaining time
  CallOptions meet(const Announcement& own, const CallOptions& options);
  void takePart(const Announcement& call, const CallOptions& options);
  int rank() const { return heldRanks()[0]; }

  /// Neutral input and unused output of a joined rank.
  std::vector<std::byte> scratch_;
};

}  // namespace gradlink

// Point-to-point messages: a byte stream for each pair of ranks. A short message is left in the
// stream and its send returns at once. The send of a long one, which flows through (processes) or
// is copied from the sender's buffer (threads), waits for its receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/envelope.h"
#include "core/kernels/store_style.h"
#include "shm/session.h"

namespace gradlink::shm {

/// Messages up to this size are sent eagerly if the pair's unread ones leave room (16 KiB or more).
inline constexpr std::size_t kEagerBytes = 8 << 10;

class Mailboxes {
 public:
  explicit Mailboxes(Session& session);

  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            CallTimeout& callTimeout);
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   CallTimeout& callTimeout);

 private:
  struct StreamEnvelope {
    Envelope envelope;
    /// For a long message between threads.
    std::uint64_t address;
  };

  bool takeUnexpected(const Wanted& wanted, Received& received);
  bool takeFrom(int source, const Wanted& wanted, CallTimeout& callTimeout, Received& received);
  void takeLong(int source, const StreamEnvelope& header, const Wanted& wanted,
                CallTimeout& callTimeout);
  void checkFits(int source, const Envelope& envelope, const Wanted& wanted);

  void put(int destination, std::uint64_t at, const void* data, std::size_t bytes);
  void get(int source, std::uint64_t at, void* data, std::size_t bytes);
  bool hasRoom(int destination, std::size_t bytes);
  void awaitRoom(int destination, std::size_t bytes, Watch& watch);
  void readUpTo(int source, std::uint64_t tail);

  Session& session_;
  /// Of a long message: both sides copy at the same time.
  const std::size_t piece_;
  StoreStyle style_;
  /// Cached counters of the other side: each look costs a cache line transfer.
  std::vector<std::uint64_t> tails_;
  std::vector<std::uint64_t> heads_;
  std::deque<Unexpected> unexpected_;
  int firstSource_ = 0;
};

}  // namespace gradlink::shm

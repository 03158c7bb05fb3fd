// Point-to-point messages: a byte stream for each pair of ranks. Short messages are left in it, so
// that a send of one returns without its receive; long ones wait for their receive and then flow
// through (processes) or are copied straight from the sender's buffer (threads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/envelope.h"
#include "core/kernels/store_style.h"
#include "shm/session.h"

namespace gradlink::shm {

/// Messages of up to this many bytes are sent without waiting for their receive while the pair's
/// unread ones fill less than a mailbox (16 KiB at the least).
inline constexpr std::size_t kEagerBytes = 8 << 10;

class Mailboxes {
 public:
  explicit Mailboxes(Session& session);

  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            CallTimeout& callTimeout);
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   CallTimeout& callTimeout);

 private:
  /// As it lies in the stream.
  struct StreamEnvelope {
    Envelope envelope;
    /// Of a long message between threads.
    std::uint64_t address;
  };

  bool takeUnexpected(const Wanted& wanted, Received& received);
  bool takeFrom(int source, const Wanted& wanted, CallTimeout& callTimeout, Received& received);
  void takeLong(int source, const StreamEnvelope& header, const Wanted& wanted,
                CallTimeout& callTimeout);
  void checkFits(int source, const Envelope& envelope, const Wanted& wanted);

  /// As it lies beside a mailbox's head.
  struct Latest {
    Envelope envelope;
    std::byte data[Mailbox::kLatestWords * sizeof(std::uint64_t) - sizeof(Envelope)];
  };
  static void writeLatest(Mailbox& box, std::uint64_t head, const Envelope& envelope,
                          const void* data);
  static bool readLatest(const Mailbox& box, std::uint64_t tail, std::uint64_t head,
                         Latest& latest);

  void put(int destination, std::uint64_t at, const void* data, std::size_t bytes);
  void get(int source, std::uint64_t at, void* data, std::size_t bytes);
  bool hasRoom(int destination, std::size_t bytes);
  void awaitRoom(int destination, std::size_t bytes, Watch& watch);
  void readUpTo(int source, std::uint64_t tail);

  Session& session_;
  StoreStyle style_;
  /// What this rank knows of another. Each look at what the other side writes costs a line that
  /// comes from its core.
  struct Peer {
    /// Where its reading, and its writing, had got to when it was last looked at.
    std::uint64_t tail = 0;
    std::uint64_t head = 0;
    /// Whether a message of it has come since the last one to it: then it may well wait for the
    /// next. Of messages in a row the copy of the latest would only disturb its reading.
    bool answered = true;
  };
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  std::vector<Peer> peers_;
  std::deque<Unexpected> unexpected_;
  int firstSource_ = 0;
};

}  // namespace gradlink::shm

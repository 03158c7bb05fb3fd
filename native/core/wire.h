// Messages between the ranks of a communicator that neither side waits for, as a parameter server
// needs.
//
// A message is a short header and an optional payload in memory from allocate(). On one host the
// receiver reads the payload in the sender's memory until it releases it. Across hosts the receiver
// gets a copy.
//
// One thread polls; send(), release(), allocate(), deallocate() and wake() are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/deadline.h"

namespace gradlink {

/// A received message. Header and payload stay valid until release(token), from any thread.
struct WireMessage {
  int source = 0;
  std::span<const std::byte> header;
  const void* payload = nullptr;
  std::size_t bytes = 0;
  std::uint64_t token = 0;
};

/// What a poll found. Messages of one peer are in order. Its releases come no later than a message
/// it sent after them, and its end comes last.
struct WireEvents {
  std::vector<WireMessage> messages;
  /// Tickets of sends whose payload may be overwritten: released (one host) or sent (across hosts).
  std::vector<std::uint64_t> sent;
  /// Ranks whose process ended without closing; each is reported once, after its last messages.
  std::vector<int> lost;
  /// Ranks that closed their wire; reported likewise.
  std::vector<int> left;
  bool empty() const { return messages.empty() && sent.empty() && lost.empty() && left.empty(); }
  void clear() {
    messages.clear();
    sent.clear();
    lost.clear();
    left.clear();
  }
};

class Wire {
 public:
  static constexpr std::size_t kMostHeaderBytes = 224;

  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;
  /// Whether all ranks are on this host with a core each: then a thread may spin while it waits.
  virtual bool ranksHaveCores() const { return false; }
  /// Whether this rank reads payloads in place.
  virtual bool sharesMemoryWith(int rank) const = 0;

  /// 64-byte aligned, zeroed. Throws Error(outOfMemory).
  virtual void* allocate(std::size_t bytes) = 0;
  /// No send of it may be pending.
  virtual void deallocate(void* memory) = 0;
  /// Whether all of these bytes are in memory that receivers read in place. Thread-safe.
  virtual bool owns(const void* /*memory*/, std::size_t /*bytes*/) { return false; }

  /// Queues a message; never waits for the receiver. Messages to one rank arrive in order. The
  /// header (at most kMostHeaderBytes) is copied. The payload (null: none) lies in memory from
  /// allocate() and must not change until `ticket` is reported as sent. A ticket of 0, for messages
  /// without payload, is not reported. Messages to a rank that has gone are dropped and reported as
  /// sent.
  virtual void send(int destination, std::span<const std::byte> header, const void* payload,
                    std::size_t bytes, std::uint64_t ticket) = 0;
  virtual void release(std::uint64_t token) = 0;

  /// Appends new events; waits for one until the deadline or a wake().
  virtual void poll(WireEvents& events, Deadline until) = 0;
  /// Whether a waiting poll() returns for sent tickets alone. Otherwise they come with the next
  /// event or some milliseconds late: a wake-up costs more than the memory that comes back. Called
  /// by the polling thread; initially true.
  virtual void setReceiptsMatter(bool /*value*/) {}
  /// Whether a poll() sleeps, so that ending it costs a wake-up. Thread-safe.
  virtual bool pollSleeps() const = 0;
  /// Ends a waiting poll(), or the next one. Thread-safe.
  virtual void wake() = 0;

  /// Bytes sent to and received from each rank, headers included.
  virtual std::vector<std::uint64_t> bytesSent() const = 0;
  virtual std::vector<std::uint64_t> bytesReceived() const = 0;

  /// Tells the peers that this rank leaves. First delivers everything queued and waits, within the
  /// deadline, until peers have read this rank's memory. Idempotent; no other call may run. A wire
  /// that ends without it is lost to its peers.
  virtual void close(Deadline until) = 0;

 protected:
  Wire() = default;
};

}  // namespace gradlink

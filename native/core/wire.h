// Messages between the ranks of a communicator that neither side waits for: what a parameter server
// talks over. Collectives need everybody at once; a wire delivers to whoever polls.
//
// A message is a short header and an optional payload. On one host a payload is not copied: the
// receiver reads the sender's memory until it releases it, which is why payloads lie in memory from
// allocate(). Across hosts it travels, and the receiver gets a buffer of its own.
//
// One thread polls; send(), release(), allocate(), deallocate() and wake() are safe from any.
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

/// A message that has come. Header and payload stay valid until release(token), from any thread.
struct WireMessage {
  int source = 0;
  std::span<const std::byte> header;
  const void* payload = nullptr;
  std::size_t bytes = 0;
  std::uint64_t token = 0;
};

/// What a poll found. Of one peer: messages in order; releases that came before a message here at
/// the latest with it; its end last.
struct WireEvents {
  std::vector<WireMessage> messages;
  /// The tickets of sends whose payload may be written again: the receiver has released it (one
  /// host), or it has left (across hosts).
  std::vector<std::uint64_t> sent;
  /// Ranks whose process ended without saying goodbye. Each is told once, after its last messages.
  std::vector<int> lost;
  /// Ranks that closed their wire in good order. Likewise.
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
  /// "shm" or "mpi".
  virtual const char* backend() const = 0;
  /// Whether all ranks are on this host, with a core for each: then one thread of a rank may spin
  /// where it waits for another rank.
  virtual bool ranksHaveCores() const { return false; }
  /// Whether a payload to this rank is read where it lies.
  virtual bool sharesMemoryWith(int rank) const = 0;

  /// 64-byte aligned, zeroed. Throws Error(outOfMemory).
  virtual void* allocate(std::size_t bytes) = 0;
  /// No send of it may be pending.
  virtual void deallocate(void* memory) = 0;
  /// Whether all of these bytes lie in memory from allocate() that receivers read where it lies.
  /// From any thread.
  virtual bool owns(const void* /*memory*/, std::size_t /*bytes*/) { return false; }

  /// Queues a message; never waits for the receiver. Messages to one rank arrive in order. The
  /// header (at most kMostHeaderBytes) is copied; the payload (null for none) lies in memory from
  /// allocate() and stays unchanged until `ticket` is told as sent. A ticket of 0 is not told; it
  /// is for messages without payload. To a rank that is lost or has left: dropped, and told as
  /// sent.
  virtual void send(int destination, std::span<const std::byte> header, const void* payload,
                    std::size_t bytes, std::uint64_t ticket) = 0;
  /// This rank is done with a message's header and payload.
  virtual void release(std::uint64_t token) = 0;

  /// Adds to `events` what has happened; waits for something until the deadline or a wake().
  virtual void poll(WireEvents& events, Deadline until) = 0;
  /// Whether a poll() that waits is to end when nothing but tickets of sends can be told. Where
  /// they do not matter they are told with the next event, or some milliseconds late: a wake-up
  /// costs more than the memory that comes back. By the thread that polls, before it does; at first
  /// they matter.
  virtual void setReceiptsMatter(bool /*value*/) {}
  /// Whether a poll() sleeps, so that ending it costs a wake-up. From any thread.
  virtual bool pollSleeps() const = 0;
  /// Ends a poll() that waits, or the next one. From any thread.
  virtual void wake() = 0;

  /// Bytes handed to send() for each rank and taken from each, headers included.
  virtual std::vector<std::uint64_t> bytesSent() const = 0;
  virtual std::vector<std::uint64_t> bytesReceived() const = 0;

  /// Peers learn that this rank left. Everything queued is delivered first, and what they read of
  /// this rank's memory is awaited, within the deadline. Idempotent; no other call may be running.
  /// A wire that ends without it is lost to its peers.
  virtual void close(Deadline until) = 0;

 protected:
  Wire() = default;
};

}  // namespace gradlink

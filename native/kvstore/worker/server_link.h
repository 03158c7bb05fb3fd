// A worker's wire to its servers, with counters and the memory of messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/wire.h"
#include "kvstore/protocol/protocol.h"
#include "kvstore/worker/buffers.h"

namespace gradlink::dist {

/// For one thread, except for counters, wake(), constants and where noted.
class ServerLink {
 public:
  ServerLink(std::unique_ptr<Wire> wire, int workers, int servers);

  int workers() const { return workers_; }
  int servers() const { return servers_; }
  int rank() const { return wire_->rank(); }
  /// "server 2" or "worker 0", of a rank of the wire.
  std::string nameOf(int rank) const;
  /// The server's index of a message's source; -1: not a server.
  int serverOf(int source) const { return source < workers_ ? -1 : source - workers_; }

  void send(int server, const Header&);
  /// The buffer's first `bytes`; `sent` returns it later.
  void send(int server, const Header&, WireBuffer*, std::size_t bytes);
  /// A copy of the payload.
  void send(int server, const Header&, std::span<const std::uint8_t> payload);

  WireBuffers& buffers() { return buffers_; }
  // Thread-safe, as owns().
  void* allocate(std::size_t bytes) { return wire_->allocate(bytes); }
  void deallocate(void* memory) { wire_->deallocate(memory); }
  bool owns(const void* memory, std::size_t bytes) const { return wire_->owns(memory, bytes); }
  void release(const WireMessage& message) { wire_->release(message.token); }
  /// Runs in parallel with other threads under the engine's lock.
  void poll(WireEvents& events, Deadline until);
  void setReceiptsMatter(bool value) { wire_->setReceiptsMatter(value); }
  bool pollSleeps() const { return wire_->pollSleeps(); }
  void wake() { wire_->wake(); }
  void close(Deadline until) { wire_->close(until); }

  /// By server; thread-safe.
  std::vector<std::uint64_t> bytesSent() const { return read(sent_); }
  std::vector<std::uint64_t> bytesReceived() const { return read(received_); }

 private:
  using Counters = std::vector<std::atomic<std::uint64_t>>;

  void sendPayload(int server, const Header&, const void* payload, std::size_t bytes,
                   std::uint64_t ticket);
  static std::vector<std::uint64_t> read(const Counters&);

  const std::unique_ptr<Wire> wire_;
  const int workers_;
  const int servers_;
  WireBuffers buffers_;
  Counters sent_;
  Counters received_;
};

}  // namespace gradlink::dist

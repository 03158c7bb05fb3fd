// A wire over MPI. A message is a frame: the header and a short payload. A long payload follows
// separately, from the sender's memory to a buffer of the receiver.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "core/wire.h"
#include "messages/rank_link.h"
#include "messages/wire_buffers.h"

namespace gradlink::messages {

class MpiWire final : public Wire, private AtEnd {
 public:
  /// Takes ownership of the MPI communicator.
  explicit MpiWire(CommHandle comm);
  ~MpiWire() override;

  int rank() const override { return link_.rank(); }
  int size() const override { return link_.size(); }
  const char* backend() const override { return nameOfTransport(); }
  bool sharesMemoryWith(int) const override { return false; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) override;
  void send(int destination, std::span<const std::byte> header, const void* payload,
            std::size_t bytes, std::uint64_t ticket) override;
  void release(std::uint64_t token) override;
  void poll(WireEvents& events, Deadline until) override;
  bool pollSleeps() const override { return asleep_.load(); }
  void wake() override;
  std::vector<std::uint64_t> bytesSent() const override;
  std::vector<std::uint64_t> bytesReceived() const override;
  void close(Deadline until) override;

 private:
  enum class FrameKind : std::uint32_t { message, left };
  struct FrameHead {
    FrameKind kind;
    std::uint32_t headerBytes;
    std::uint64_t payloadBytes;
  };
  static_assert(sizeof(FrameHead) == 16);

  struct Posted {
    RequestHandle request;
    WireBuffer frame;
  };
  /// A message that has come, or whose payload is still coming. Its address is its token.
  struct Incoming {
    int source;
    FrameHead head;
    WireBuffer frame;
    WireBuffer payload;
    std::vector<RequestHandle> requests;
  };
  struct Outgoing {
    int destination;
    std::uint64_t ticket;
    WireBuffer frame;
    std::vector<RequestHandle> requests;
  };

  /// Cancels open receives: MPI reports them when it is finalized.
  void atEnd() override;
  void post();
  void begin(Outgoing& outgoing, FrameKind kind, std::span<const std::byte> header,
             const void* payload, std::size_t bytes);
  bool arrive();
  bool deliver(WireEvents& events);
  void finish(WireEvents& events);
  bool done(std::vector<RequestHandle>& requests);
  void takeSent(WireEvents& events);
  void notice(WireEvents& events);
  void sleep(std::chrono::nanoseconds most);

  Link link_;
  WireBuffers buffers_;
  std::deque<Posted> posted_;
  /// By source, in the order of sends.
  std::vector<std::deque<std::unique_ptr<Incoming>>> incoming_;
  std::size_t underway_ = 0;
  std::uint32_t glances_ = 0;
  /// Sends that poll() tests.
  std::vector<Outgoing> outgoing_;
  std::vector<bool> left_;

  /// Keeps a frame and its payload together; guards what follows.
  mutable std::mutex mutex_;
  std::vector<Outgoing> fresh_;
  std::vector<std::uint64_t> sent_;
  std::unordered_set<Incoming*> delivered_;
  std::unordered_set<void*> memory_;
  std::vector<std::uint64_t> bytesSent_;
  std::vector<std::uint64_t> bytesReceived_;
  bool closed_ = false;

  /// Raised by events that may end a poll's sleep.
  std::atomic<std::uint32_t> events_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> woken_{false};
};

}  // namespace gradlink::messages

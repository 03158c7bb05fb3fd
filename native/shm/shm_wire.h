// The wire between ranks of one host: descriptors go through rings, payloads stay in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/wire.h"
#include "shm/deferred_unmaps.h"
#include "shm/session.h"
#include "shm/shared_regions.h"
#include "shm/wire_layout.h"

namespace gradlink::shm {

class ShmWire final : public Wire {
 public:
  ShmWire(Membership membership, int rank);
  /// A wire that ends without close() is lost to its peers, as if its process had died.
  ~ShmWire() override;

  int rank() const override { return rank_; }
  int size() const override { return session_.size(); }
  const char* backend() const override { return "shm"; }
  bool ranksHaveCores() const override { return session_.ownCores(); }
  bool sharesMemoryWith(int /*rank*/) const override { return true; }

  void* allocate(std::size_t bytes) override { return regions_.allocate(bytes); }
  void deallocate(void* memory) override { regions_.release(memory); }
  bool owns(const void* memory, std::size_t bytes) override { return regions_.owns(memory, bytes); }

  void send(int destination, std::span<const std::byte> header, const void* payload,
            std::size_t bytes, std::uint64_t ticket) override;
  void release(std::uint64_t token) override;
  void poll(WireEvents& events, Deadline until) override;
  void setReceiptsMatter(bool value) override;
  bool pollSleeps() const override;
  void wake() override;
  std::vector<std::uint64_t> bytesSent() const override;
  std::vector<std::uint64_t> bytesReceived() const override;
  void close(Deadline until) override;

 private:
  /// A message that did not fit into its ring yet.
  struct Queued {
    wire::Entry entry;
    std::byte rest[kLine];
  };
  struct Peer {
    std::mutex mutex;  // guards the state that senders and releasers share
    std::deque<Queued> queue;
    std::deque<std::uint32_t> queuedReceipts;  // receipts that did not fit into their ring yet
    /// Tickets of pending messages, by receipt - 1; 0: none.
    std::vector<std::uint64_t> tickets;
    std::vector<std::uint32_t> freeReceipts;
    std::uint64_t tail = 0;
    std::uint64_t headSeen = 0;
    std::uint64_t receiptTail = 0;
    std::uint64_t receiptHeadSeen = 0;
    bool gone = false;
    // ---- of the polling thread
    std::uint64_t head = 0;
    std::uint64_t receiptHead = 0;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> received{0};
  };
  struct Record {
    int source = 0;
    std::uint32_t receipt = 0;
    bool held = false;
    std::byte header[Wire::kMostHeaderBytes];
  };

  Peer& peer(int r) { return peers_[static_cast<std::size_t>(r)]; }
  wire::Inbox& inbox(int r) const { return wire::inbox(session_.segment(), r); }
  void ring(int r);
  void ringReceipt(int r);
  bool called() const;

  // ---- under the peer's mutex
  bool put(int to, Peer& peer, const Queued& message);
  bool putReceipt(int to, Peer& peer, std::uint32_t receipt);
  bool flush(int to, Peer& peer);

  // ---- of the polling thread
  void sweep(WireEvents& events);
  void sweepAll(std::atomic<std::uint64_t>* words, WireEvents& events);
  void sweepFrom(int source, WireEvents& events);
  void takeMessages(int source, WireEvents& events);
  void takeReceipts(int source, WireEvents& events);
  void dismiss(int r, WireEvents& events);
  void checkLiveness(WireEvents& events);
  void giveBack(Record& record);
  bool settled();
  void end(wire::Inbox::State state);

  const int rank_;
  /// Null between processes.
  std::shared_ptr<DeferredUnmaps> deferredUnmaps_;
  Session session_;
  const Waiter waiter_;
  SharedRegions regions_;
  const std::uint64_t capacity_;
  std::vector<Peer> peers_;

  std::mutex recordsMutex_;
  std::deque<Record> records_;
  std::vector<Record*> freeRecords_;

  std::mutex droppedMutex_;
  std::vector<std::uint64_t> droppedTickets_;  // tickets of sends to ranks that are gone

  std::atomic<bool> queued_{false};
  std::atomic<bool> woken_{false};
  Deadline::Clock::time_point nextCheck_{};
  bool closed_ = false;
};

}  // namespace gradlink::shm

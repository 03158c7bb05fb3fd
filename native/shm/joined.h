// One rank that joined others by name, as thread or process. Chooses how each call's data moves.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/direct.h"
#include "core/one_rank.h"
#include "shm/mailbox.h"
#include "shm/rendezvous/rendezvous.h"
#include "shm/session.h"
#include "shm/shared_regions.h"
#include "shm/shm.h"
#include "shm/staged.h"
#include "shm/staging_styles.h"

namespace gradlink::shm {

/// The largest input sent with the announcement of its call, between processes.
inline constexpr std::size_t kMostOneShotBytes = 16 << 10;

class Joined final : public OneRank {
 public:
  Joined(const JoinOptions& options, Membership membership);
  ~Joined() override;

  int size() const override { return session_.size(); }
  const char* backend() const override { return "shm"; }
  double timeoutMs() const override { return options_.timeoutMs; }

  void run(const Call&) override;

  void* allocShared(std::size_t bytes) override;
  void freeShared(void* memory) override { regions_.release(memory); }
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions&) override;
  std::unique_ptr<Wire> openWire(const CallOptions&) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions&) override;
  void abort(const std::string& reason) override;
  void fail(const Error& error) override;
  void follow(Communicator& above) override;
  void check(const char* op) override;
  /// A rank that left in good order is out: the others may continue among themselves.
  void leave() override {
    if (!closed_.load(std::memory_order_acquire)) session_.leave();
  }
  void close() override;

 private:
  /// JoinOptions::look for a rendezvous of these ranks.
  std::function<void(std::span<const int>)> seeing(const char* op, std::vector<int> ranks);
  CallTimeout callTimeoutOf(const CallOptions& options) const;
  void checkOpen(const char* op);
  /// Runs a call. After a fatal error it returns only once no peer uses the caller's buffers.
  template <class Body>
  auto guarded(const char* op, Body body);
  void transfer(Message& message, CallTimeout& callTimeout);
  /// `own`: for neighborAllReduce, else null.
  void move(const Shape& shape, const Buffers& buffers, const Neighborhood* own,
            CallTimeout& callTimeout);
  bool oneShotAllReduce(const Shape& shape, const Buffers& buffers, const CallOptions& options);
  /// `room`: the largest input of any rank.
  void oneShot(const Shape& shape, const Buffers& buffers, const Neighborhood* own,
               std::size_t room, CallTimeout& callTimeout);
  void stage(const StagedCall& call, std::size_t bytes, std::uint32_t number,
             CallTimeout& callTimeout);
  bool direct(const Shape& shape, std::uint32_t call, std::span<const WeightRow> weights,
              CallTimeout& callTimeout);

  JoinOptions options_;
  std::shared_ptr<DeferredUnmaps> deferredUnmaps_;
  Session session_;
  SharedRegions regions_;
  Mailboxes mailboxes_;
  std::atomic<bool> closed_{false};
  StagingStyles styles_;
  StagedProgress staged_;
  std::uint32_t directCalls_ = 0;
  std::uint64_t splits_ = 0;
  std::uint64_t wires_ = 0;
  /// The largest input sent with the announcement of its call.
  std::size_t oneShotBytes_;
  std::vector<InView> in_;
  std::vector<OutView> out_;
};

}  // namespace gradlink::shm

// Who does what when, in a store on GPUs: one thread takes everything that is queued, makes rounds
// of it, begins them without waiting for the devices, and watches what is under way.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kvstore/gpu/key.h"
#include "kvstore/gpu/site.h"
#include "kvstore/queue.h"

namespace gradlink {

class GpuEngine {
 public:
  /// `admit` fixes what depends on the order of submission: called in that order, on the engine's
  /// thread.
  GpuEngine(GpuSite& site, std::function<void(GpuItem&)> admit)
      : site_(site), admit_(std::move(admit)) {}
  ~GpuEngine() { stop(); }
  GpuEngine(const GpuEngine&) = delete;
  GpuEngine& operator=(const GpuEngine&) = delete;

  /// In this order.
  void submit(std::vector<GpuRequest> requests);
  /// Runs `body` after everything submitted before was admitted and before anything submitted later
  /// is.
  void apply(std::function<void()> body);
  /// Runs `body` when everything submitted before is done, and before anything submitted later
  /// begins.
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket);
  /// What an operation in flight waits for has come. From any thread.
  void wake();
  /// Drops what is queued and waits for what is under way. Idempotent.
  void stop();
  /// After stop(): a device did not end what was under way, and may still use memory.
  bool lost() const { return lost_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Entry = Queue<GpuKey, GpuRequest>::Entry;
  /// A ticket that is to be told of so many operations.
  struct Ended {
    std::shared_ptr<Ticket> ticket;
    std::exception_ptr error;
    std::size_t operations;
  };
  using Clock = std::chrono::steady_clock;

  void enqueue(Entry entry);
  void startThread();
  void notify(Lock& lock);
  void serve();
  bool admitEntries();
  std::size_t admit(GpuRequest& request, std::size_t most);
  void runFence();
  bool beginsSmall() const { return site_.firstRoundBytes() < site_.roundBytes(); }
  bool mayBegin() const;
  bool beginRounds();
  std::vector<std::unique_ptr<GpuUnit>> makeRound();
  std::unique_ptr<GpuUnit> takeUnit(GpuKey& key);
  bool watchInFlight();
  void calmDown(const std::exception_ptr& error);
  void end(std::vector<std::unique_ptr<GpuUnit>>& units, const std::exception_ptr& error);
  void tell(std::shared_ptr<Ticket> ticket, const std::exception_ptr& error);
  void rest(Lock& lock, Clock::time_point since);

  GpuSite& site_;
  const std::function<void(GpuItem&)> admit_;

  // ---- of the engine's thread
  std::vector<Entry> taken_;   // what has just come in
  std::deque<Entry> backlog_;  // what came in and was not admitted yet
  Queue<GpuKey, GpuRequest> queue_;
  std::vector<GpuKey*> begun_;                   // keys of the round that is made
  std::vector<std::unique_ptr<GpuUnit>> spare_;  // of earlier rounds
  InFlightList inFlight_;
  std::size_t nextRoundBytes_ = 0;  // at most
  std::size_t onDevice_ = 0;        // of those in flight: what waits for a device
  std::size_t bytesOnDevice_ = 0;   // of these
  std::vector<Ended> ended_;
  /// Why nothing can be done any more.
  std::exception_ptr broken_;
  bool lost_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  // ---- guarded by the mutex
  std::vector<Entry> incoming_;
  bool woken_ = false;
  bool asleep_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: the rest outlives it
};

}  // namespace gradlink

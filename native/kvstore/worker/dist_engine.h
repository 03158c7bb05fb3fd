// The thread of a distributed store's worker: takes submitted operations, talks to the servers, and
// finishes tickets. While it sleeps, submitters send small operations themselves: a wake-up only to
// pass something on costs as much as the server's answer. If they also poll for the answer, this
// thread rests: it sleeps without being woken by messages.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/deadline.h"
#include "core/error.h"
#include "core/wire.h"
#include "kvstore/queue.h"
#include "kvstore/worker/dist_store.h"
#include "kvstore/worker/presence.h"
#include "kvstore/worker/request.h"
#include "kvstore/worker/server_link.h"
#include "kvstore/worker/transfers.h"

namespace gradlink::dist {

class DistEngine {
 public:
  DistEngine(std::unique_ptr<Wire> wire, const DistStoreOptions& options);
  ~DistEngine() { stop(true); }
  DistEngine(const DistEngine&) = delete;
  DistEngine& operator=(const DistEngine&) = delete;

  // ---- from any thread; in the order of the calls

  /// While nothing is pending.
  void setCompression(const CompressionTerms&);
  /// The key outlives the engine, which owns the engine's part of it from here on.
  void define(DistKey&);
  /// `here`: this thread may send small operations, and finish some, before submit() returns.
  void submit(std::vector<std::pair<DistKey*, Operation>> operations, bool here = false);
  /// For threads that submit `here` and poll: handles messages; returns whether to call again.
  /// After options.lookNanoseconds the engine's thread takes over.
  bool look();
  void request(DistRequest);
  /// Drops queued tasks and ends the thread. `inGoodOrder`: delivers what was sent and tells the
  /// servers that this worker leaves; else they see a death. Only the first call counts.
  void stop(bool inGoodOrder);

  int rank() const { return link_.rank(); }
  /// Memory that servers read in place.
  void* allocShared(std::size_t bytes) { return link_.allocate(bytes); }
  void freeShared(void* memory) {
    // After a failure servers may still read lent memory: it goes with the wire.
    if (!over_.load(std::memory_order_acquire)) link_.deallocate(memory);
  }
  WorkerReport report() const;
  int lostRanks() const { return lost_.load(std::memory_order_relaxed); }

  // ---- for requests, on the engine's thread

  /// From now on pushes are misuse.
  void leaveRounds() { transfers_.leave(); }
  const std::vector<DistKey*>& keys() const { return keys_; }

 private:
  /// How often the engine checks deadlines.
  static constexpr auto kLookEvery = std::chrono::milliseconds(200);

  using KeyOperation = std::pair<DistKey*, Operation>;
  using Tasks = Queue<DistKey, KeyOperation, DistRequest>;
  using Task = Tasks::Entry;
  /// The request that the servers are answering.
  struct Asking {
    DistRequest* request = nullptr;
    std::uint64_t number = 0;
    std::vector<bool> answered;
    std::size_t left = 0;
    std::exception_ptr error;
    Deadline::Clock::time_point begun;
  };

  void enqueue(Task task);
  bool sendHere();
  void serve();
  void guarded(const std::function<void()>& turn);
  void turn(std::unique_lock<std::mutex>& lock);
  void handleEvents();
  void takeTasks();
  void carryOut(KeyOperation&& operation);
  void sendTerms(const CompressionTerms&);
  void defineKey(DistKey& key);
  void goOn();
  void begin(DistRequest& request);
  void end();
  void wait(std::unique_lock<std::mutex>& lock);
  void addWait(double seconds);
  void poll(std::unique_lock<std::mutex>& lock, Deadline until);
  bool mayRest() const;
  void rest(std::unique_lock<std::mutex>& lock);
  bool rests() const { return resting_.load() != 0; }
  void wakeThread();
  void handle(const WireMessage&);
  void answered(const Header&, const WireMessage&);
  void lost(int rank, bool died);
  Deadline::Clock::time_point waitsSince() const;
  void lookAtTime();
  void fail(const Error&);
  void fail(std::exception_ptr);
  void finishTickets();
  bool isWaiting() const { return current_ != nullptr || queue_.unfinished() > 0; }

  const DistStoreOptions options_;
  ServerLink link_;
  Tasks queue_;  // guarded by turn_
  Finished finished_;
  Transfers transfers_;

  // ---- guarded by turn_, which the thread holds while it is awake
  std::mutex turn_;
  std::vector<DistKey*> keys_;
  std::size_t keyBytes_ = 0;
  std::unique_ptr<Asking> current_;
  std::uint64_t lastRequest_ = 0;
  std::exception_ptr error_;  // what ended the store
  WireEvents events_;         // used by the engine's thread, or the one that polls while it rests
  Deadline::Clock::time_point lookedFrom_;
  Deadline::Clock::time_point lastLook_;
  Deadline::Clock::time_point lastProgress_;
  Presence presence_;

  // ---- shared
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::vector<Task> taken_;  // guarded by turn_; a member to reuse its memory
  bool stopped_ = false;
  std::atomic<bool> hasTasks_{false};
  std::atomic<bool> small_{false};  // whether the last submission was small
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint32_t> resting_{0};  // a futex; asleep_ is also set
  std::atomic<bool> stopping_{false};
  std::atomic<bool> over_{false};  // not in good order
  std::atomic<int> lost_{0};
  std::atomic<double> copySeconds_{0};
  std::atomic<double> waitSeconds_{0};

  std::thread thread_;  // last: it uses the rest
};

}  // namespace gradlink::dist

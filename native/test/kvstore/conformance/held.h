// Stores that are held: what is submitted waits until a test lets it go on, so that all of it is
// queued before the first of it begins.
#pragma once

#include <latch>
#include <semaphore>

#include "core/thread_pool.h"
#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {

/// An updater that holds its keys until released.
class HeldUpdater final : public ExternalUpdater {
 public:
  void update(const UpdateRequest& /*request*/,
              std::function<void(std::exception_ptr)> done) override {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
    arrived_.release();
  }
  void awaitCall() { arrived_.acquire(); }
  /// Each is told its own exception, handed over: ThreadSanitizer does not see how the library
  /// counts its owners.
  void release(const char* failure = nullptr) {
    std::vector<std::function<void(std::exception_ptr)>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(done_);
    }
    for (auto& done : all) {
      done(failure == nullptr
               ? nullptr
               : std::make_exception_ptr(Error(ErrorCode::invalidArgument, failure).stillUsable()));
    }
  }

  /// The one that came first.
  void releaseOne() {
    std::function<void(std::exception_ptr)> done;
    {
      const std::lock_guard lock(mutex_);
      done = std::move(done_.front());
      done_.erase(done_.begin());
    }
    done(nullptr);
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void(std::exception_ptr)>> done_;
  std::counting_semaphore<> arrived_{0};
};

/// Keeps the shared pool's threads from helping, so that a store works through its queue alone and
/// the order in which operations end is the order in which they began.
class PoolHeld {
 public:
  PoolHeld() {
    const int width = ThreadPool::shared().width();
    std::latch all(width);
    holder_ = std::thread([this, width, &all] {
      ThreadPool::shared().parallel(static_cast<std::size_t>(width), [&](std::size_t) {
        all.count_down();
        release_.wait();
      });
    });
    all.wait();
  }
  ~PoolHeld() {
    release_.count_down();
    holder_.join();
  }

 private:
  std::latch release_{1};
  std::thread holder_;
};

/// What is told, in its order.
class Told {
 public:
  std::shared_ptr<Ticket> ticket(int value) {
    return std::make_shared<Ticket>([this, value](const std::exception_ptr&) {
      const std::lock_guard lock(mutex_);
      values_.push_back(value);
      changed_.notify_all();
    });
  }
  std::vector<int> values(std::size_t atLeast = 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return values_.size() >= atLeast; });
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> values_;
};

/// A fence that holds back what comes after it: what is before it is with an updater, or other
/// workers have not come to it.
class Gate {
 public:
  /// `open`: of one, and the same for all workers.
  Gate(const AnyStore& store, std::latch& open) : store_(store), open_(open) {
    if (store.several()) {
      if (store.rank != 0) open.wait();
    } else {
      const KeyId key = store.define("gate", Floats(8));
      store.store.setUpdater(updater_);
      pushing_.emplace(store.begin({{OperationKind::push, key, store.everywhere(Floats(8, 1))}}));
      updater_->awaitCall();
      store.store.setUpdater(nullptr);
    }
    store.store.barrier(fence_.ticket());
  }
  /// Once this worker has submitted what is to wait.
  void open() {
    if (store_.rank == 0) open_.count_down();
    updater_->release();
    if (pushing_) pushing_->wait();
    fence_.wait();
  }

 private:
  const AnyStore& store_;
  std::latch& open_;
  const std::shared_ptr<HeldUpdater> updater_ = std::make_shared<HeldUpdater>();
  std::optional<RunningSteps<Floats>> pushing_;
  Waiter fence_;
};

}  // namespace gradlink::test

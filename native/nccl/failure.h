// The first error that ended a communicator, for calls on all threads.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "core/error.h"

namespace gradlink::nccl {

class Failure {
 public:
  /// The first call counts. `failure`: of a call, whose name the message starts with.
  void failAll(const Error& error, bool failure) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error;
    failure_ = failure;
    there_.store(true, std::memory_order_release);
  }
  /// Fast; may miss a recent failure of another thread.
  bool there() const { return there_.load(std::memory_order_acquire); }
  /// Ordered with failAll().
  bool hasFailed() const {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }

  /// Throws the failure, if any, as the reason why `op` fails.
  void check(const char* op) const {
    if (!there()) return;
    const std::lock_guard lock(mutex_);
    throw Error(
        error_->code,
        std::string(op) + ": " + (failure_ ? "the communicator has failed: " : "") + error_->what())
        .withRank(error_->rank)
        .withOp(op);
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> there_{false};
  std::optional<Error> error_;
  bool failure_ = false;
};

}  // namespace gradlink::nccl

// A call of somebody outside the engine (an updater, another store), seen from the engine's thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace gradlink {

class GpuCall {
 public:
  /// What the one called is to call when it is done, from any thread, with null or what went wrong.
  /// `wake` then tells the engine.
  std::function<void(std::exception_ptr)> whenDone(std::function<void()> wake) {
    return [outcome = outcome_, wake = std::move(wake)](std::exception_ptr error) {
      {
        const std::lock_guard lock(outcome->mutex);
        outcome->come = true;
        outcome->error = std::move(error);
      }
      wake();
    };
  }

  /// Throws what the call failed with.
  bool done() {
    const std::lock_guard lock(outcome_->mutex);
    if (outcome_->come && outcome_->error) std::rethrow_exception(outcome_->error);
    return outcome_->come;
  }

 private:
  struct Outcome {
    std::mutex mutex;
    bool come = false;
    std::exception_ptr error;
  };
  /// Shared with the one called, which may end after a store that was stopped has let go.
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace gradlink

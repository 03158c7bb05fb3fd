// A call of an updater that runs outside the store, seen from the engine's thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "kvstore/store.h"

namespace gradlink {

class GpuUpdaterCall {
 public:
  /// `wake` is called when the updater is done, from its thread.
  void start(ExternalUpdater& updater, const UpdateRequest& request, std::function<void()> wake) {
    updater.update(request, [outcome = outcome_, wake = std::move(wake)](std::exception_ptr error) {
      {
        const std::lock_guard lock(outcome->mutex);
        outcome->come = true;
        outcome->error = std::move(error);
      }
      wake();
    });
  }

  /// Throws what the updater failed with.
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
  /// Shared with the updater, which may end after a store that was stopped has let go.
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace gradlink

// One environment's thread for measurements without a communicator.
#pragma once

#include <memory>

#include "binding/environment.h"
#include "binding/napi_setup.h"
#include "core/work_queue.h"

namespace gradlink::binding {

/// Created and destroyed on the JavaScript thread. Measurements of one environment run in sequence.
class MeasureThread final : public Resident {
 private:
  std::shared_ptr<Environment> environment_;

 public:
  explicit MeasureThread(Environment& environment) : environment_(environment.shared_from_this()) {
    environment_->add(this);
  }
  ~MeasureThread() override { environment_->remove(this); }
  /// A measurement waits for nobody and ends in seconds.
  void abandon() override {}
  void join() override { queue.drain(); }

  WorkQueue queue;
};

}  // namespace gradlink::binding

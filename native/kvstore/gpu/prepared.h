// A call of a store on GPUs that comes again: its operations have their places, and a submission
// copies none of them. Making hundreds of them anew takes longer than a GPU takes to sum them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/gpu/gpu_engine.h"
#include "kvstore/store.h"

namespace gradlink {

class GpuPreparedCall final : public PreparedCall {
 public:
  GpuPreparedCall(GpuEngine& engine, std::vector<GpuRequest> requests)
      : engine_(engine), requests_(std::move(requests)) {}

  void submit(std::int32_t priority, const std::shared_ptr<Ticket>& ticket) const override {
    std::vector<GpuRequest> requests = requests_;
    for (GpuRequest& request : requests) {
      request.priority = priority;
      request.ticket = ticket;
    }
    engine_.submit(std::move(requests));
  }

 private:
  GpuEngine& engine_;
  const std::vector<GpuRequest> requests_;
};

}  // namespace gradlink

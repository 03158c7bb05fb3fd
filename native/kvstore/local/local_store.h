// The stores of one process on CPU devices: `local` and `device`.
//
// Both sum in one pass over the devices' arrays in host memory. `local` merges and stores on the
// host, without compression. `device` merges on the devices (here also host memory) and compresses
// what leaves a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/base/compression.h"
#include "kvstore/keyed_store.h"
#include "kvstore/local/key_lane.h"
#include "kvstore/local/scheduler.h"
#include "kvstore/store.h"

namespace gradlink {

enum class Placement : std::uint8_t { host = 0, devices = 1 };

class LocalStore final : public ValueStore<KeyLane> {
 public:
  LocalStore(Placement placement, std::size_t devices);
  ~LocalStore() override;

  void submit(std::vector<Operation> operations, bool here = false) override;
  void setCompression(const GradientCompression&) override;
  void stop() override;

 private:
  std::unique_ptr<KeyLane> makeKey(Key) override;
  void apply(std::function<void()> body) override { scheduler_.apply(std::move(body)); }
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) override {
    scheduler_.fence(std::move(body), std::move(ticket));
  }
  const OptimizerState* stateOf(const KeyLane& lane, Copies&) override {
    return hasState(lane) ? lane.state->state.get() : nullptr;
  }
  void restoreKey(KeyLane& lane, std::unique_ptr<OptimizerState> state,
                  const std::shared_ptr<Optimizer>& optimizer, Restored& restored) override {
    restored.emplace_back(&lane, loadedState(optimizer, std::move(state), lane));
  }

  const Placement placement_;
  const std::size_t devices_;
  std::unique_ptr<const GradientCompression> compression_;
  std::size_t valueBytes_ = 0;  // guarded by the keys' lock

  Scheduler scheduler_;  // last: its threads use the rest
};

}  // namespace gradlink

// Operations of tests on arrays of the host, whatever the devices of a store are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/store.h"
#include "kvstore/store_checks.h"
#include "test/kvstore/gpu/support.h"
#include "test/kvstore/support.h"

namespace gradlink::test {

/// An operation on arrays of the host, one for each device, which come to GPUs and back on their
/// own.
template <class Array>
struct StepOf {
  OperationKind kind;
  KeyId key;
  /// None: what is in `out`, in place.
  std::vector<Array> in = {};
  std::vector<Array>* out = nullptr;
  std::int32_t priority = 0;
  std::vector<std::int64_t> rows = {};
  std::vector<std::vector<std::int64_t>> inRows = {};
  bool compact = false;
  /// Which device each array is of; none: the first array is of the first one, and so on.
  std::vector<std::size_t> devices = {};
  /// Of GPUs: every other array lies on the host, from the second on.
  bool mixed = false;
};
using Step = StepOf<Floats>;

/// Steps that were submitted in one call. The arrays pushed must be as they were when it is over,
/// and are overwritten then.
template <class Array>
class RunningSteps {
 public:
  RunningSteps(Store& store, const std::vector<int>& gpus, std::vector<StepOf<Array>> steps,
               bool here = false,
               const std::function<std::shared_ptr<Ticket>(std::size_t)>& told = {})
      : steps_(std::move(steps)), places_(steps_.size()) {
    std::vector<Operation> operations;
    const auto all = waiter_.ticket();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepOf<Array>& step = steps_[i];
      Operation made;
      made.kind = step.kind;
      made.key = step.key;
      made.priority = step.priority;
      made.rows = step.rows;
      made.inRows = step.inRows;
      made.compact = step.compact;
      made.ticket = told ? told(i) : all;
      before_.push_back(step.in);
      // Rows come from the host, whatever the devices.
      const std::vector<int> none;
      for (void* const array :
           placed(step, step.in, step.inRows.empty() ? gpus : none, places_[i].in, made.inGpus)) {
        made.in.push_back(array);
      }
      if (step.out != nullptr) {
        made.out = placed(step, *step.out, gpus, places_[i].out, made.outGpus);
      }
      if (isPush(step.kind) && step.in.empty()) {
        made.in.assign(made.out.begin(), made.out.end());
        made.inGpus = made.outGpus;
        if (step.kind == OperationKind::push) made.out.clear();
      }
      operations.push_back(std::move(made));
    }
    store.submit(std::move(operations), here);
  }
  void wait() {
    waiter_.wait();
    check();
  }
  /// Once it is over: what was pushed, and what was pulled.
  void check() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepOf<Array>& step = steps_[i];
      places_[i].readIn(step.in);
      EXPECT_EQ(step.in, before_[i]);
      for (Array& array : step.in) std::fill(array.begin(), array.end(), 77);
      if (step.out != nullptr) places_[i].readOut(*step.out);
    }
  }

 private:
  /// The arrays that lie on GPUs, and none in the place of others.
  using Placed = std::vector<std::unique_ptr<GpuBytes>>;
  struct Places {
    Placed in;
    Placed out;

    void readIn(std::vector<Array>& arrays) const { read(in, arrays); }
    void readOut(std::vector<Array>& arrays) const { read(out, arrays); }
    static void read(const Placed& placed, std::vector<Array>& arrays) {
      for (std::size_t i = 0; i < placed.size(); ++i) {
        if (placed[i]) placed[i]->read(arrays[i].data());
      }
    }
  };
  static std::vector<void*> placed(const StepOf<Array>& step, std::vector<Array>& arrays,
                                   const std::vector<int>& gpus, Placed& there,
                                   std::vector<int>& where) {
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      Array& array = arrays[i];
      pointers.push_back(array.data());
      if (gpus.empty()) continue;
      const bool onGpu = !step.mixed || i % 2 == 0;
      const int gpu = gpus[step.devices.empty() ? i % gpus.size() : step.devices[i]];
      where.push_back(onGpu ? gpu : -1);
      there.emplace_back();
      if (!onGpu) continue;
      there.back() = std::make_unique<GpuBytes>(gpu, array.data(), array.size() * sizeof(array[0]));
      pointers.back() = there.back()->data();
    }
    return pointers;
  }

  Waiter waiter_;
  std::vector<StepOf<Array>> steps_;
  std::vector<std::vector<Array>> before_;
  std::vector<Places> places_;
};

}  // namespace gradlink::test

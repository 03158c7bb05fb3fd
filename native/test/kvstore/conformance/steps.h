// Operations of tests on arrays of the host, whatever the devices of a store are.
#pragma once

#include <cstring>

#include "kvstore/store_checks.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {

/// Where the arrays of a store's devices lie.
struct ArrayPlaces {
  /// None where the devices are the host's.
  std::vector<int> gpus;
  /// Not null: in memory of this store, from which servers read.
  Store* shared = nullptr;
};

/// An operation on arrays of the host, one for each device, which come to their places and back on
/// their own.
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
  /// Every other array, from the second on, is as it is: on the host, and not shared.
  bool mixed = false;
};
using Step = StepOf<Floats>;

/// Steps that were submitted in one call. The arrays pushed must be as they were when it is over,
/// and are overwritten then.
template <class Array>
class RunningSteps {
 public:
  /// `told`: the ticket of each step, where wait() is not called.
  RunningSteps(Store& store, const ArrayPlaces& places, std::vector<StepOf<Array>> steps,
               bool here = false,
               const std::function<std::shared_ptr<Ticket>(std::size_t)>& told = {})
      : steps_(std::move(steps)), places_(steps_.size()) {
    std::vector<Operation> operations;
    const auto all = waiter_.ticket();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepOf<Array>& step = steps_[i];
      Operation made{.kind = step.kind,
                     .key = step.key,
                     .priority = step.priority,
                     .rows = step.rows,
                     .compact = step.compact,
                     .inRows = step.inRows,
                     .ticket = told ? told(i) : all};
      before_.push_back(step.in);
      // Rows come from the host, whatever the devices.
      const auto in = placed(step, step.in, step.inRows.empty() ? places : ArrayPlaces{},
                             places_[i].in, made.inGpus);
      made.in.assign(in.begin(), in.end());
      if (step.out != nullptr) {
        made.out = placed(step, *step.out, places, places_[i].out, made.outGpus);
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
      read(places_[i].in, step.in);
      EXPECT_EQ(step.in, before_[i]);
      for (Array& array : step.in) std::fill(array.begin(), array.end(), 77);
      if (step.out != nullptr) read(places_[i].out, *step.out);
    }
  }

 private:
  /// Memory that an array was copied to.
  struct Copy {
    void* data;
    /// Back, once: what is there is overwritten.
    std::function<void(void* to)> read;
  };
  /// None in the place of arrays that are as they are.
  using Copies = std::vector<std::optional<Copy>>;
  struct Places {
    Copies in;
    Copies out;
  };
  static void read(const Copies& copies, std::vector<Array>& arrays) {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (copies[i]) copies[i]->read(arrays[i].data());
    }
  }
  static Copy onGpu(int gpu, const Array& array) {
    const auto there =
        std::make_shared<GpuBytes>(gpu, array.data(), array.size() * sizeof(array[0]));
    return {there->data(), [there](void* to) { there->read(to); }};
  }
  static Copy inShared(Store& store, const Array& array) {
    const std::size_t bytes = array.size() * sizeof(array[0]);
    const std::shared_ptr<void> memory(store.allocShared(bytes),
                                       [&store](void* all) { store.freeShared(all); });
    std::memcpy(memory.get(), array.data(), bytes);
    return {memory.get(), [memory, bytes](void* to) {
              std::memcpy(to, memory.get(), bytes);
              std::memset(memory.get(), 0x55, bytes);
            }};
  }
  static std::vector<void*> placed(const StepOf<Array>& step, std::vector<Array>& arrays,
                                   const ArrayPlaces& places, Copies& copies,
                                   std::vector<int>& gpus) {
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const bool stays = (step.mixed && i % 2 == 1) || arrays[i].empty();
      std::optional<Copy>& copy = copies.emplace_back();
      if (!places.gpus.empty()) {
        const std::size_t device = step.devices.empty() ? i % places.gpus.size() : step.devices[i];
        gpus.push_back(stays ? -1 : places.gpus[device]);
        if (!stays) copy = onGpu(gpus.back(), arrays[i]);
      } else if (places.shared != nullptr && !stays) {
        copy = inShared(*places.shared, arrays[i]);
      }
      pointers.push_back(copy ? copy->data : arrays[i].data());
    }
    return pointers;
  }

  Waiter waiter_;
  std::vector<StepOf<Array>> steps_;
  std::vector<std::vector<Array>> before_;
  std::vector<Places> places_;
};

}  // namespace gradlink::test

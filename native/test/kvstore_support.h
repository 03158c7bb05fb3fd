// What tests of a store share: operations on float32 arrays, run and waited for.
#pragma once

#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/store.h"

namespace gradlink::test {

using Floats = std::vector<float>;

/// Waits for a ticket, and throws what it failed with.
class Waiter {
 public:
  std::shared_ptr<Ticket> ticket() {
    return std::make_shared<Ticket>([promise = promise_](std::exception_ptr error) {
      if (error) {
        promise->set_exception(std::move(error));
      } else {
        promise->set_value();
      }
    });
  }
  void wait() { promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
};

inline Operation operation(OperationKind kind, KeyId key, std::vector<Floats>& arrays,
                           std::shared_ptr<Ticket> ticket, std::int32_t priority = 0) {
  Operation made;
  made.kind = kind;
  made.key = key;
  made.priority = priority;
  made.ticket = std::move(ticket);
  for (Floats& array : arrays) {
    if (kind == OperationKind::pull) {
      made.out.push_back(array.data());
    } else {
      made.in.push_back(array.data());
    }
  }
  return made;
}

inline void submitOne(Store& store, Operation made, bool here = false) {
  std::vector<Operation> operations;
  operations.push_back(std::move(made));
  store.submit(std::move(operations), here);
}

inline void run(Store& store, OperationKind kind, KeyId key, std::vector<Floats>& arrays,
                bool here = false) {
  Waiter waiter;
  submitOne(store, operation(kind, key, arrays, waiter.ticket()), here);
  waiter.wait();
}

inline KeyId makeKey(Store& store, const std::string& name, const Floats& value) {
  const KeyId key = store.define(name, DType::float32, value.size(), 1);
  std::vector<Floats> values{value};
  run(store, OperationKind::init, key, values);
  return key;
}

inline void pushTimes(Store& store, KeyId key, std::vector<Floats>& arrays, int times,
                      const std::shared_ptr<Ticket>& ticket) {
  std::vector<Operation> operations;
  for (int i = 0; i < times; ++i) {
    operations.push_back(operation(OperationKind::push, key, arrays, ticket));
  }
  store.submit(std::move(operations));
}

}  // namespace gradlink::test

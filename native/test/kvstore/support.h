// What tests of a store share: operations on float32 arrays, run and waited for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kvstore/base/compression.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/store.h"

namespace gradlink::test {

using Floats = std::vector<float>;

/// A weight decay for tests of every optimizer: none where the optimizer refuses one.
inline double decayOf(const std::string& optimizer, double wd) {
  return optimizer == "groupadagrad" ? 0 : wd;
}

inline OptimizerSpec specOf(const std::string& name, std::map<std::string, double> numbers = {}) {
  OptimizerSpec spec{.name = name, .numbers = std::move(numbers)};
  return spec;
}
inline std::shared_ptr<Optimizer> optimizerOf(const std::string& name,
                                              std::map<std::string, double> numbers = {}) {
  return Optimizer::create(specOf(name, std::move(numbers)));
}

/// Waits for a ticket, and throws what it failed with.
class Waiter {
 public:
  std::shared_ptr<Ticket> ticket() {
    return std::make_shared<Ticket>([outcome = outcome_](const std::exception_ptr& error) {
      const std::lock_guard lock(outcome->mutex);
      if (outcome->ended) std::terminate();  // twice
      outcome->ended = true;
      outcome->error = partsOf(error);
      outcome->changed.notify_all();
    });
  }
  void wait() {
    std::unique_lock lock(outcome_->mutex);
    outcome_->changed.wait(lock, [this] { return outcome_->ended; });
    if (!outcome_->error) return;
    const Parts& error = *outcome_->error;
    Error thrown(error.code, error.text);
    thrown.usable = error.usable;
    throw thrown.withRank(error.rank);
  }

 private:
  /// Not the exception itself: ThreadSanitizer does not see how the library counts its owners.
  struct Parts {
    ErrorCode code;
    std::string text;
    int rank = -1;
    bool usable = false;
  };
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::optional<Parts> error;
  };

  static std::optional<Parts> partsOf(const std::exception_ptr& error) {
    if (!error) return std::nullopt;
    try {
      std::rethrow_exception(error);
    } catch (const Error& thrown) {
      return Parts{thrown.code, thrown.what(), thrown.rank, thrown.usable};
    } catch (const std::exception& thrown) {
      return Parts{ErrorCode::system, thrown.what()};
    }
  }

  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

/// Begins what ends with a ticket, and waits for it.
template <class Request>
void waitFor(const Request& request) {
  Waiter waiter;
  request(waiter.ticket());
  waiter.wait();
}
inline void meet(Store& store) {
  waitFor([&](auto ticket) { store.barrier(ticket); });
}

inline Operation operation(OperationKind kind, KeyId key, std::vector<Floats>& arrays,
                           std::shared_ptr<Ticket> ticket, std::int32_t priority = 0) {
  Operation made{.kind = kind, .key = key, .priority = priority, .ticket = std::move(ticket)};
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
  waitFor([&](auto ticket) { submitOne(store, operation(kind, key, arrays, ticket), here); });
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
  operations.reserve(static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    operations.push_back(operation(OperationKind::push, key, arrays, ticket));
  }
  store.submit(std::move(operations));
}

}  // namespace gradlink::test

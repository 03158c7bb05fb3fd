// One key of a store, whatever the store is made of: what it is, what an optimizer keeps for it,
// and what an operation on it goes by once it is admitted.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/dtype.h"
#include "cuda/memory.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/store.h"

namespace gradlink {

struct Key;

/// What an optimizer keeps for a key. The arrays are made by the first update, when the value has
/// settled; the count of updates goes ahead with every push that is admitted.
struct KeyState {
  std::shared_ptr<Optimizer> optimizer;
  std::unique_ptr<OptimizerState> state;
  /// One for each array of the state where the value is on a GPU; those have names and types then,
  /// but no data.
  std::vector<cuda::DeviceMemory> arrays;
  bool made = false;
};

/// A state that was read, of a key that it fits.
std::shared_ptr<KeyState> loadedState(std::shared_ptr<Optimizer>, std::unique_ptr<OptimizerState>,
                                      const Key&);

struct Key {
  KeyId id = 0;
  /// The string key, or the int key in decimal.
  std::string name;
  DType dtype{};
  std::size_t count = 0;
  /// Elements of a row; divides the count.
  std::size_t rowLength = 1;
  /// Of a part of a larger key: where it begins there.
  std::size_t first = 0;
  /// Null where no optimizer has had a push of it here.
  std::shared_ptr<KeyState> state = nullptr;

  std::size_t bytes() const { return count * sizeOf(dtype); }
};

/// What is fixed when an operation is admitted, in the order of submission.
struct Admission {
  std::shared_ptr<KeyState> state;  // push with an optimizer
  UpdateNumbers numbers{};
  std::shared_ptr<ExternalUpdater> external;
  std::exception_ptr error;
};

/// How pushes change stored values at present; at most one of the two is there.
struct UpdateRule {
  std::shared_ptr<Optimizer> optimizer;
  std::shared_ptr<ExternalUpdater> external;

  /// Fixes what a push of the key goes by; other operations go by nothing.
  void admit(OperationKind, Key&, Admission&) const;
};

/// Whether pulls that wait behind such an operation may become one with it.
inline bool carriesPulls(OperationKind kind) { return kind != OperationKind::rowSparsePull; }
/// Not behind an external updater, whose failure is the push's alone.
inline bool carriesPulls(OperationKind kind, const Admission& admitted) {
  return carriesPulls(kind) && !admitted.external && !admitted.error;
}

}  // namespace gradlink

// A key of any store, its optimizer state, and what admission fixes for an operation.
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

/// An optimizer's state of a key. The first update allocates the arrays, once the value has
/// settled; the update count is incremented at admission.
struct KeyState {
  std::shared_ptr<Optimizer> optimizer;
  std::unique_ptr<OptimizerState> state;
  /// For values on GPUs: one for each array of the state, whose own data is then empty.
  std::vector<cuda::DeviceMemory> arrays;
  bool made = false;
};

/// Makes the state's arrays in the host's memory, where they were not made yet. Some begin as the
/// weights.
void makeOnHost(KeyState&, const Key&, const void* weights);

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
  /// If it is a part of a larger key: its offset there.
  std::size_t first = 0;
  /// Null before the first push with an optimizer.
  std::shared_ptr<KeyState> state = nullptr;

  std::size_t bytes() const { return count * sizeOf(dtype); }
};

/// Fixed when an operation is admitted, in the order of submission.
struct Admission {
  std::shared_ptr<KeyState> state;  // push with an optimizer
  UpdateNumbers numbers{};
  std::shared_ptr<ExternalUpdater> external;
  std::exception_ptr error;
};

/// How pushes change stored values; at most one of the two is set.
struct UpdateRule {
  std::shared_ptr<Optimizer> optimizer;
  std::shared_ptr<ExternalUpdater> external;

  /// Fixes the update of a push; does nothing for other operations.
  void admit(OperationKind, Key&, Admission&) const;
};

/// Whether the following pulls may be merged with such an operation.
inline bool carriesPulls(OperationKind kind) { return kind != OperationKind::rowSparsePull; }
/// Not with an external updater: its failure concerns only the push.
inline bool carriesPulls(OperationKind kind, const Admission& admitted) {
  return carriesPulls(kind) && !admitted.external && !admitted.error;
}

}  // namespace gradlink

#include "kvstore/key.h"

#include <utility>

#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

std::shared_ptr<KeyState> freshState(const std::shared_ptr<Optimizer>& optimizer, const Key& key) {
  auto fresh = std::make_shared<KeyState>();
  fresh->optimizer = optimizer;
  fresh->state = std::make_unique<OptimizerState>(OptimizerState{.key = key.name,
                                                                 .dtype = key.dtype,
                                                                 .count = key.count,
                                                                 .arrays = {},
                                                                 .first = key.first,
                                                                 .rowLength = key.rowLength});
  return fresh;
}

}  // namespace

void makeOnHost(KeyState& state, const Key& key, const void* weights) {
  if (state.made) return;
  state.state->arrays = std::move(
      state.optimizer->createState(key.name, weights, key.count, key.dtype, key.rowLength)->arrays);
  state.made = true;
}

std::shared_ptr<KeyState> loadedState(std::shared_ptr<Optimizer> optimizer,
                                      std::unique_ptr<OptimizerState> state, const Key& key) {
  auto loaded = std::make_shared<KeyState>();
  loaded->optimizer = std::move(optimizer);
  loaded->state = std::move(state);
  loaded->state->first = key.first;
  loaded->made = true;
  return loaded;
}

void UpdateRule::admit(OperationKind kind, Key& key, Admission& admitted) const {
  if (!isPush(kind)) return;
  admitted.external = external;
  if (!optimizer) return;
  if (!isFloat(key.dtype)) {
    admitted.error = needsFloats(key.name, key.dtype);
    return;
  }
  if (!key.state || key.state->optimizer != optimizer) key.state = freshState(optimizer, key);
  admitted.state = key.state;
  admitted.numbers = optimizer->issue(*key.state->state);
}

}  // namespace gradlink

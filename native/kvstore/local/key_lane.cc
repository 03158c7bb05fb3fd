#include "kvstore/local/key_lane.h"

#include <utility>

#include "kvstore/local/key_work.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

OperationKind kindOf(const Item& item) { return static_cast<const KeyItem&>(item).operation.kind; }

}  // namespace

KeyLane::KeyLane(Scheduler& scheduler, const UpdateRule& rule,
                 const GradientCompression* compression, KeyId id, std::string name, DType dtype,
                 std::size_t count, std::size_t rowLength, std::size_t first)
    : scheduler(scheduler),
      rule(rule),
      compression(compression),
      id(id),
      name(std::move(name)),
      dtype(dtype),
      count(count),
      rowLength(rowLength),
      first(first),
      memory_(count * sizeOf(dtype) + kValueOffset) {}

void KeyLane::admit(Item& admitted) {
  auto& item = static_cast<KeyItem&>(admitted);
  if (!isPush(item.operation.kind)) return;
  item.external = rule.external;
  if (!rule.optimizer) return;
  if (!isFloat(dtype)) {
    item.error = needsFloats(name, dtype);
    return;
  }
  if (!state || state->optimizer != rule.optimizer) {
    state = std::make_shared<KeyState>();
    state->optimizer = rule.optimizer;
    state->state = std::make_unique<OptimizerState>(OptimizerState{.key = name,
                                                                   .dtype = dtype,
                                                                   .count = count,
                                                                   .arrays = {},
                                                                   .first = first,
                                                                   .rowLength = rowLength});
  }
  item.state = state;
  item.numbers = rule.optimizer->issue(*state->state);
}

std::unique_ptr<Work> KeyLane::plan() {
  auto work = std::make_unique<KeyWork>(*this);
  const auto take = [&] {
    work->items.push_back(std::move(queue_.front()));
    queue_.pop_front();
  };
  take();
  const auto& head = static_cast<const KeyItem&>(*work->items.front());
  // Pulls that wait behind a push (or a pull) ride along: each block is copied to its outputs while
  // it is in the cache, instead of being read from memory again. Not behind an external updater,
  // whose failure is the push's alone.
  const bool carries =
      head.operation.kind != OperationKind::rowSparsePull && !head.external && !head.error;
  while (carries && !queue_.empty() && kindOf(*queue_.front()) == OperationKind::pull) take();
  work->prepare();
  return work;
}

}  // namespace gradlink

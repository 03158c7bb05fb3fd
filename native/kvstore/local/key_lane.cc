#include "kvstore/local/key_lane.h"

#include <utility>

#include "kvstore/local/key_work.h"

namespace gradlink {

KeyLane::KeyLane(Scheduler& scheduler, const UpdateRule& rule,
                 const GradientCompression* compression, Key key)
    : Lane(std::move(key)),
      scheduler(scheduler),
      rule(rule),
      compression(compression),
      memory_(bytes() + kValueOffset) {}

std::unique_ptr<Work> KeyLane::plan() {
  auto work = std::make_unique<KeyWork>(*this);
  work->items.push_back(queue.take());
  // Each block is copied to the outputs of pulls while it is in the cache, instead of being read
  // from memory again.
  const KeyItem& head = *work->items.front();
  const bool carries = carriesPulls(head.operation.kind, head);
  while (carries && queue.pullIsNext()) work->items.push_back(queue.take());
  work->prepare();
  return work;
}

}  // namespace gradlink

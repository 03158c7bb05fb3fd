#include "kvstore/local/local_store.h"

#include <utility>

namespace gradlink {
LocalStore::LocalStore(Placement placement, std::size_t devices)
    : placement_(placement), devices_(devices) {}

LocalStore::~LocalStore() { stop(); }

void LocalStore::stop() { scheduler_.stop(); }

std::unique_ptr<KeyLane> LocalStore::makeKey(Key key) {
  auto lane = std::make_unique<KeyLane>(scheduler_, rule_, compression_.get(), std::move(key));
  valueBytes_ += lane->bytes();
  return lane;
}

void LocalStore::submit(std::vector<Operation> operations, bool here) {
  Scheduler::Submission submission;
  submission.reserve(operations.size());
  forEachChecked(operations, [&](KeyLane& lane, Operation& operation) {
    if (!operation.inRows.empty() && lane.compresses()) throw noCompressedRows(lane.name);
    auto item = std::make_unique<KeyItem>();
    item->bytes = lane.bytes() * (operation.in.size() + operation.out.size() + 1);
    item->touched = valueBytes_ * (2 * devices_ + 1);
    item->operation = std::move(operation);
    submission.emplace_back(&lane, std::move(item));
  });
  scheduler_.submit(std::move(submission), here);
}

void LocalStore::setCompression(const GradientCompression& compression) {
  checkCompressible(placement_ == Placement::host, compression_ != nullptr);
  const std::vector<KeyLane*> lanes = allKeys();
  scheduler_.apply([&] {
    compression_ = std::make_unique<const GradientCompression>(compression);
    for (KeyLane* const lane : lanes) lane->compression = compression_.get();
  });
}

}  // namespace gradlink

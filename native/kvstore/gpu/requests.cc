#include "kvstore/gpu/requests.h"

#include <string>
#include <utility>
#include <vector>

#include "kvstore/base/misuse.h"
#include "kvstore/gpu/shards.h"

namespace gradlink {
namespace {

std::vector<GpuArray> placed(const std::string& name, std::span<const int> gpus,
                             std::span<void* const> arrays, const GpuRequests::PlaceOf& placeOf) {
  if (arrays.size() > gpus.size()) {
    throw storeMisuse("key " + name + ": " + std::to_string(arrays.size()) + " arrays for " +
                      std::to_string(gpus.size()) + " GPUs");
  }
  std::vector<GpuArray> all;
  all.reserve(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t place = placeOf(gpus[i]);
    if (place == kHostPlace && gpus[i] >= 0) {
      throw storeMisuse("key " + name + ": an array is on gpu:" + std::to_string(gpus[i]) +
                        ", which is not a device of this store");
    }
    all.push_back({arrays[i], place});
  }
  return all;
}

}  // namespace

void GpuRequests::add(GpuKey& key, Operation operation) {
  if (operation.compact) {
    throw storeUnsupported("a store on GPUs pulls rows into arrays of their key's length");
  }
  const std::int32_t priority = operation.priority;
  std::shared_ptr<Ticket> ticket = std::move(operation.ticket);
  if (requests_.empty() || requests_.back().ticket != ticket ||
      requests_.back().priority != priority) {
    requests_.push_back({all_, all_->size(), 0, priority, std::move(ticket)});
  }
  addInParts(all_->emplace_back(located(key, std::move(operation))));
  requests_.back().to = all_->size();
}

GpuOperation GpuRequests::located(GpuKey& key, Operation operation) const {
  std::vector<void*> inputs;
  inputs.reserve(operation.in.size());
  // No input is written.
  for (const void* input : operation.in) inputs.push_back(const_cast<void*>(input));
  const auto gpusOr = [this](const std::vector<int>& own) {
    return own.empty() ? gpus_ : std::span<const int>(own);
  };
  GpuOperation made;
  made.key = &key;
  made.kind = operation.kind;
  if (operation.inRows.empty()) {
    made.in = placed(key.name, gpusOr(operation.inGpus), inputs, placeOf_);
  } else {
    // Rows come from the host, whatever the devices.
    for (void* const input : inputs) made.in.push_back({input, kHostPlace});
  }
  made.out = placed(key.name, gpusOr(operation.outGpus), operation.out, placeOf_);
  made.rows = std::move(operation.rows);
  made.inRows = std::move(operation.inRows);
  return made;
}

}  // namespace gradlink

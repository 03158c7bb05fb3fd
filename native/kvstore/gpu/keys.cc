#include "kvstore/gpu/keys.h"

#include <memory>
#include <utility>

#include "kvstore/gpu/located.h"
#include "kvstore/gpu/shards.h"
#include "kvstore/store_checks.h"

namespace gradlink {

KeyId GpuKeys::define(const std::string& name, DType dtype, std::size_t count,
                      std::size_t rowLength, const std::function<void(GpuKey&)>& makeRoom) {
  checkRowLength(name, count, rowLength);
  const std::lock_guard lock(mutex_);
  auto key = std::make_unique<GpuKey>(Key{table_.next(name), name, dtype, count, rowLength});
  makeRoom(*key);
  return table_.add(name, std::move(key)).id;
}

std::vector<GpuRequest> GpuKeys::requestsOf(
    std::vector<Operation> operations, const std::function<std::size_t(int gpu)>& placeOf) const {
  const auto all = std::make_shared<GpuOperations>();
  all->reserve(operations.size());
  std::vector<GpuRequest> requests;
  const std::lock_guard lock(mutex_);
  for (Operation& operation : operations) {
    GpuKey& key = table_.at(operation.key);
    if (operation.compact) {
      throw storeUnsupported("a store on GPUs pulls rows into arrays of their key's length");
    }
    const std::int32_t priority = operation.priority;
    std::shared_ptr<Ticket> ticket = std::move(operation.ticket);
    if (requests.empty() || requests.back().ticket != ticket ||
        requests.back().priority != priority) {
      requests.push_back({all, all->size(), 0, priority, std::move(ticket)});
    }
    addInParts(located(key, std::move(operation), gpus_, placeOf), *all);
    requests.back().to = all->size();
  }
  return requests;
}

GpuKey* GpuKeys::named(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return table_.named(name);
}

std::vector<GpuKey*> GpuKeys::all() const {
  const std::lock_guard lock(mutex_);
  return table_.all();
}

}  // namespace gradlink

#include "kvstore/gpu/keys.h"

#include <memory>
#include <utility>

#include "kvstore/gpu/item.h"
#include "kvstore/store_checks.h"

namespace gradlink {

KeyId GpuKeys::define(const std::string& name, DType dtype, std::size_t count,
                      std::size_t rowLength, const std::function<void(GpuKey&)>& makeRoom) {
  checkRowLength(name, count, rowLength);
  const std::lock_guard lock(mutex_);
  auto key = std::make_unique<GpuKey>();
  key->id = table_.next(name);
  key->name = name;
  key->dtype = dtype;
  key->count = count;
  key->rowLength = rowLength;
  makeRoom(*key);
  return table_.add(name, std::move(key)).id;
}

std::vector<GpuItem> GpuKeys::itemsOf(std::vector<Operation> operations,
                                      const std::function<std::size_t(int gpu)>& placeOf) const {
  std::vector<GpuItem> items;
  items.reserve(operations.size());
  const std::lock_guard lock(mutex_);
  for (Operation& operation : operations) {
    GpuKey& key = table_.at(operation.key);
    if (operation.compact) {
      throw storeUnsupported("a store on GPUs pulls rows into arrays of their key's length");
    }
    items.push_back(itemOf(key, std::move(operation), gpus_, placeOf));
  }
  return items;
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

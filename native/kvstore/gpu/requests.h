// From operations as they were submitted to what the engine gets: arrays have their places, and
// keys that can be cut the operations of their parts.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kvstore/gpu/key.h"
#include "kvstore/store.h"

namespace gradlink {

/// A request for all operations that follow one another with one ticket and one priority.
class GpuRequests {
 public:
  using PlaceOf = std::function<std::size_t(int gpu)>;

  /// `gpus`: of the store's devices, for operations that name none. `placeOf`: kHostPlace where no
  /// place is that GPU. `operations`: how many there will be.
  GpuRequests(std::span<const int> gpus, PlaceOf placeOf, std::size_t operations)
      : gpus_(gpus), placeOf_(std::move(placeOf)) {
    all_->reserve(operations);
  }

  /// Of an operation that fits its key. Throws where it does not fit the store.
  void add(GpuKey& key, Operation operation);
  std::vector<GpuRequest> take() { return std::move(requests_); }

 private:
  GpuOperation located(GpuKey& key, Operation operation) const;

  const std::span<const int> gpus_;
  const PlaceOf placeOf_;
  const std::shared_ptr<GpuOperations> all_ = std::make_shared<GpuOperations>();
  std::vector<GpuRequest> requests_;
};

}  // namespace gradlink

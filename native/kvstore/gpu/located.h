// From an operation as it was submitted to one whose arrays have their places.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kvstore/gpu/key.h"
#include "kvstore/store.h"

namespace gradlink {

/// `gpus`: of the store's devices, for operations that name none. `placeOf`: kHostPlace where no
/// place is that GPU. Throws where the operation does not fit its key or the store.
GpuOperation located(GpuKey& key, Operation operation, std::span<const int> gpus,
                     const std::function<std::size_t(int gpu)>& placeOf);

}  // namespace gradlink

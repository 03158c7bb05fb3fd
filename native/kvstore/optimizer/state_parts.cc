#include "kvstore/optimizer/state_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kvstore/base/misuse.h"

namespace gradlink {

void appendState(OptimizerState& whole, const OptimizerState& next) {
  if (whole.arrays.size() != next.arrays.size() || whole.dtype != next.dtype) {
    throw storeMisuse("the parts of key " + whole.key + " do not fit together");
  }
  for (std::size_t i = 0; i < whole.arrays.size(); ++i) {
    StateArray& array = whole.arrays[i];
    const StateArray& behind = next.arrays[i];
    AlignedBuffer data(array.data.size() + behind.data.size());
    // An empty array may have no memory.
    if (array.data.size() != 0) std::memcpy(data.data(), array.data.data(), array.data.size());
    if (behind.data.size() != 0) {
      std::memcpy(static_cast<std::byte*>(data.data()) + array.data.size(), behind.data.data(),
                  behind.data.size());
    }
    array.data = std::move(data);
    array.count += behind.count;
  }
  whole.count += next.count;
  whole.updates = std::max(whole.updates, next.updates);
}

OptimizerState cutState(const OptimizerState& whole, std::size_t first, std::size_t count) {
  OptimizerState part{.key = whole.key,
                      .dtype = whole.dtype,
                      .count = count,
                      .updates = whole.updates,
                      .arrays = {},
                      .lastLearningRate = whole.lastLearningRate};
  for (const StateArray& array : whole.arrays) {
    // One number for each row, or for each element.
    const std::size_t each = array.count == whole.count ? 1 : whole.rowLength;
    const std::size_t kept = count / each;
    const std::size_t size = sizeOf(array.dtype);
    AlignedBuffer data(kept * size);
    if (kept != 0) {
      std::memcpy(data.data(),
                  static_cast<const std::byte*>(array.data.data()) + first / each * size,
                  kept * size);
    }
    part.arrays.push_back({array.name, array.dtype, kept, std::move(data)});
  }
  return part;
}

}  // namespace gradlink

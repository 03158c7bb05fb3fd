#include "kvstore/gpu/located.h"

#include <string>
#include <utility>
#include <vector>

#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

std::vector<GpuArray> placed(const std::string& name, std::span<const int> gpus,
                             std::span<void* const> arrays,
                             const std::function<std::size_t(int gpu)>& placeOf) {
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

GpuOperation located(GpuKey& key, Operation operation, std::span<const int> gpus,
                     const std::function<std::size_t(int gpu)>& placeOf) {
  checkOperation(operation, key);
  std::vector<void*> inputs;
  inputs.reserve(operation.in.size());
  // No input is written.
  for (const void* input : operation.in) inputs.push_back(const_cast<void*>(input));
  const auto gpusOr = [gpus](const std::vector<int>& own) {
    return own.empty() ? gpus : std::span<const int>(own);
  };
  GpuOperation made;
  made.key = &key;
  made.kind = operation.kind;
  if (operation.inRows.empty()) {
    made.in = placed(key.name, gpusOr(operation.inGpus), inputs, placeOf);
  } else {
    // Rows come from the host, whatever the devices.
    for (void* const input : inputs) made.in.push_back({input, kHostPlace});
  }
  made.out = placed(key.name, gpusOr(operation.outGpus), operation.out, placeOf);
  made.rows = std::move(operation.rows);
  made.inRows = std::move(operation.inRows);
  return made;
}

}  // namespace gradlink

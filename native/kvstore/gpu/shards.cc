#include "kvstore/gpu/shards.h"

#include <memory>
#include <utility>

namespace gradlink {
namespace {

/// Parts begin where kernels load 16 bytes at a time, and codes of compression are whole words.
constexpr std::size_t kPartMultiple = 64;

std::vector<GpuArray> shifted(const std::vector<GpuArray>& arrays, std::size_t bytes) {
  std::vector<GpuArray> moved;
  moved.reserve(arrays.size());
  for (const GpuArray& array : arrays) {
    moved.push_back({static_cast<std::byte*>(array.data) + bytes, array.place});
  }
  return moved;
}

}  // namespace

void cutKey(GpuKey& key, std::size_t places, std::size_t leastBytes) {
  const std::size_t each = key.count / places / kPartMultiple * kPartMultiple;
  if (places < 2 || each == 0 || each * sizeOf(key.dtype) < leastBytes) return;
  for (std::size_t first = 0; first < key.count;) {
    const std::size_t count = key.parts.size() < places ? each : key.count - first;
    auto part = std::make_unique<GpuKey>(Key{key.id, key.name, key.dtype, count, 1, first});
    part->whole = &key;
    part->part = key.parts.size();
    first += part->count;
    key.parts.push_back(std::move(part));
  }
}

void addInParts(GpuOperation operation, GpuOperations& to) {
  if (operation.key->parts.empty()) {
    to.push_back(std::move(operation));
    return;
  }
  for (const auto& part : operation.key->parts) {
    const std::size_t offset = part->first * sizeOf(part->dtype);
    GpuOperation& one = to.emplace_back();
    one.key = part.get();
    one.kind = operation.kind;
    one.in = shifted(operation.in, offset);
    one.out = shifted(operation.out, offset);
    one.rows = operation.rows;
    one.inRows = operation.inRows;
  }
}

}  // namespace gradlink

#include "kvstore/gpu/shards.h"

#include <algorithm>
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

std::size_t offsetOf(const GpuKey& part) { return part.first * sizeOf(part.dtype); }

/// An array of a key, whole and in parts.
struct BothForms {
  GpuArray whole;
  std::vector<GpuArray> parts;
};

void copyForms(const GpuKey& key, GpuPlaces& places, const std::vector<BothForms>& arrays,
               bool toParts) {
  std::vector<std::vector<GpuCopy>> copies(places.size());
  for (const BothForms& array : arrays) {
    for (std::size_t i = 0; i < key.parts.size(); ++i) {
      const GpuKey& part = *key.parts[i];
      GpuCopy copy{array.parts[i],
                   {static_cast<std::byte*>(array.whole.data) + offsetOf(part), array.whole.place},
                   part.bytes()};
      if (!toParts) std::swap(copy.to, copy.from);
      copies[copy.to.place].push_back(copy);
    }
  }
  for (std::size_t place = 0; place < places.size(); ++place) places.copy(place, copies[place]);
  for (std::size_t place = 0; place < places.size(); ++place) places[place].stream.synchronize();
}

void dropPartsRoom(GpuKey& key, GpuPlaces& places) noexcept {
  for (const auto& part : key.parts) {
    places.leaveOwner(part->owner, part->bytes());
    part->value = {};
    part->residuals.clear();
    part->staged.clear();
  }
}

}  // namespace

void addParts(GpuKey& key, std::size_t places, std::size_t leastBytes) {
  const std::size_t each = key.count / places / kPartMultiple * kPartMultiple;
  if (places < 2 || each == 0 || each * sizeOf(key.dtype) < leastBytes) return;
  for (std::size_t first = 0; first < key.count;) {
    const std::size_t count = key.parts.size() < places ? each : key.count - first;
    auto part = std::make_unique<GpuKey>(Key{key.id, key.name, key.dtype, count, 1, first});
    part->whole = &key;
    part->part = key.parts.size();
    // What is left over is short, and with those of other keys it travels as one.
    part->owner = part->part < places ? part->part : 0;
    first += part->count;
    key.parts.push_back(std::move(part));
  }
}

void addInParts(GpuOperation& operation) {
  operation.inParts.reserve(operation.key->parts.size());
  for (const auto& part : operation.key->parts) {
    GpuOperation& one = operation.inParts.emplace_back();
    one.key = part.get();
    one.kind = operation.kind;
    one.in = shifted(operation.in, offsetOf(*part));
    one.out = shifted(operation.out, offsetOf(*part));
  }
}

void makePartsRoom(GpuKey& key, GpuPlaces& places) {
  std::vector<cuda::DeviceMemory> values;
  for (const auto& part : key.parts) {
    values.emplace_back(places[part->owner].device, part->bytes());
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    GpuKey& part = *key.parts[i];
    part.value = std::move(values[i]);
    places.takeOwner(part.owner, part.bytes());
  }
}

void cutValue(GpuKey& key, GpuPlaces& places, bool written) {
  makePartsRoom(key, places);
  try {
    std::vector<BothForms> arrays;
    BothForms& values = arrays.emplace_back(BothForms{{key.value.data(), key.owner}, {}});
    for (const auto& part : key.parts) values.parts.push_back({part->value.data(), part->owner});
    for (const cuda::DeviceMemory& residual : key.residuals) {
      for (const auto& part : key.parts) part->residuals.emplace_back();
      if (residual.data() == nullptr) continue;
      const std::size_t place = places.indexOf(residual.device()->ordinal());
      BothForms& both = arrays.emplace_back(BothForms{{residual.data(), place}, {}});
      for (const auto& part : key.parts) {
        part->residuals.back() = cuda::DeviceMemory(*residual.device(), part->bytes());
        both.parts.push_back({part->residuals.back().data(), place});
      }
    }
    if (written) copyForms(key, places, arrays, true);
  } catch (...) {
    dropPartsRoom(key, places);
    throw;
  }
  places.leaveOwner(key.owner, key.bytes());
  key.value = {};
  key.copies.clear();
  key.copiesCurrent = false;
  key.residuals.clear();
  key.staged.clear();
}

void joinValue(GpuKey& key, GpuPlaces& places) {
  cuda::DeviceMemory value(places[key.owner].device, key.bytes());
  std::vector<cuda::DeviceMemory> residuals;
  std::vector<BothForms> arrays;
  BothForms& values = arrays.emplace_back(BothForms{{value.data(), key.owner}, {}});
  for (const auto& part : key.parts) values.parts.push_back({part->value.data(), part->owner});
  for (std::size_t i = 0; i < key.parts.front()->residuals.size(); ++i) {
    const bool all = std::ranges::all_of(key.parts, [i](const auto& part) {
      return part->residuals.size() > i && part->residuals[i].data() != nullptr;
    });
    if (!all) {  // a push of it failed
      residuals.emplace_back();
      continue;
    }
    cuda::Device& device = *key.parts.front()->residuals[i].device();
    const std::size_t place = places.indexOf(device.ordinal());
    residuals.emplace_back(device, key.bytes());
    BothForms& both = arrays.emplace_back(BothForms{{residuals.back().data(), place}, {}});
    for (const auto& part : key.parts) both.parts.push_back({part->residuals[i].data(), place});
  }
  copyForms(key, places, arrays, false);
  places.takeOwner(key.owner, key.bytes());
  dropPartsRoom(key, places);
  key.value = std::move(value);
  key.residuals = std::move(residuals);
}

}  // namespace gradlink

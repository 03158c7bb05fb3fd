#include "kvstore/gpu/collectives.h"

#include <algorithm>
#include <utility>

namespace gradlink {
namespace {

/// Each array starts where a kernel may load 16 bytes at a time.
constexpr std::size_t kPackAlignment = 16;

std::size_t padded(std::size_t count, DType dtype) {
  const std::size_t unit = kPackAlignment / sizeOf(dtype);
  return (count + unit - 1) / unit * unit;
}

}  // namespace

GpuCollectives::GpuCollectives(GpuPlaces& places, nccl::NcclCommunicator& communicator,
                               std::size_t fuseBelow)
    : places_(places), communicator_(communicator), fuseBelow_(fuseBelow) {}

GpuCollectives::KeyCollective& GpuCollectives::add(KeyCollective part) {
  parts_.push_back(std::move(part));
  return parts_.back();
}

bool GpuCollectives::has(Stage stage) const {
  return !launches_[static_cast<std::size_t>(stage)].empty();
}

void GpuCollectives::resolve(std::span<GpuSums> packing) {
  using Group = std::tuple<Stage, Kind, DType, std::size_t>;
  std::map<Group, std::vector<KeyCollective*>> small;
  for (KeyCollective& part : parts_) {
    if (part.count * sizeOf(part.dtype) < fuseBelow_) {
      // An all-reduce has no root.
      const std::size_t root = part.kind == Kind::allReduce ? 0 : part.root;
      small[{part.stage, part.kind, part.dtype, root}].push_back(&part);
    } else {
      queue(part, part.count, {part.in, part.out});
    }
  }
  for (auto& [group, parts] : small) {
    if (parts.size() == 1) {
      queue(*parts[0], parts[0]->count, {parts[0]->in, parts[0]->out});
    } else {
      pack(parts, packing);
    }
  }
}

/// One buffer a place, in which the collective works in place.
void GpuCollectives::pack(std::span<KeyCollective*> parts, std::span<GpuSums> packing) {
  const KeyCollective& first = *parts[0];
  const std::size_t size = sizeOf(first.dtype);
  std::size_t total = 0;
  for (const KeyCollective* part : parts) total += padded(part->count, part->dtype);
  std::vector<std::byte*> buffers;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    buffers.push_back(static_cast<std::byte*>(places_[place].arena.take(total * size)));
  }
  std::size_t offset = 0;
  for (KeyCollective* part : parts) {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      void* const there = buffers[place] + offset * size;
      const bool gives = part->kind != Kind::broadcast || place == part->root;
      // What goes out after the optimizers is written there by their steps.
      if (gives && part->stage == Stage::before) {
        packing[place][part->dtype].push_back({{part->in[place]}, {there}, part->count});
      }
      part->in[place] = there;
      part->out[place] = there;
    }
    part->packed = true;
    offset += padded(part->count, part->dtype);
  }
  queue(first, total, {{buffers.begin(), buffers.end()}, {buffers.begin(), buffers.end()}});
}

void GpuCollectives::queue(const KeyCollective& part, std::size_t count, Memory memory) {
  memory_.push_back(std::move(memory));
  nccl::Launch launch;
  launch.shape.kind = part.kind;
  launch.shape.dtype = part.dtype;
  launch.shape.count = count;
  if (part.kind != Kind::allReduce) launch.shape.root = static_cast<std::int32_t>(part.root);
  launch.buffers = {memory_.back().in, memory_.back().out};
  launches_[static_cast<std::size_t>(part.stage)].push_back(launch);
}

void GpuCollectives::launch(Stage stage) {
  std::vector<cuda::Stream*> streams;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    streams.push_back(&places_[place].stream);
  }
  communicator_.enqueue(launches_[static_cast<std::size_t>(stage)], streams);
}

}  // namespace gradlink

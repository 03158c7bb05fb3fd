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

GpuCollectives::GpuCollectives(GpuPlaces& places, GpuPacks& packs,
                               nccl::NcclCommunicator& communicator, std::size_t fuseBelow)
    : places_(places), packs_(packs), communicator_(communicator), fuseBelow_(fuseBelow) {}

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
  joinParts();
  for (KeyCollective& part : parts_) {
    if (part.joined) continue;
    if (part.count * sizeOf(part.dtype) < fuseBelow_) {
      // An all-reduce has no root.
      const std::size_t root = part.kind == Kind::allReduce ? 0 : part.root;
      small[{part.stage, part.kind, part.dtype, root}].push_back(&part);
    } else {
      queue(part, part.kind, part.count, {part.in, part.out});
    }
  }
  for (auto& [group, parts] : small) {
    if (parts.size() == 1) {
      queue(*parts[0], parts[0]->kind, parts[0]->count, {parts[0]->in, parts[0]->out});
    } else {
      pack(parts, packing);
    }
  }
}

/// What the places do with the parts of one key, each with its own, is one collective of the whole
/// key.
void GpuCollectives::joinParts() {
  using Whole = std::tuple<Stage, Kind, const GpuKey*>;
  std::map<Whole, std::size_t> known;
  std::vector<std::vector<KeyCollective*>> keys;
  for (KeyCollective& part : parts_) {
    if (part.whole == nullptr || part.index >= places_.size()) continue;
    const auto [at, isNew] = known.emplace(Whole{part.stage, part.kind, part.whole}, keys.size());
    if (isNew) keys.emplace_back();
    keys[at->second].push_back(&part);
  }
  for (const std::vector<KeyCollective*>& parts : keys) {
    if (fitTogether(parts)) join(parts);
  }
}

/// Whether all are there, in their order, and lie behind one another.
bool GpuCollectives::fitTogether(const std::vector<KeyCollective*>& parts) const {
  if (parts.size() != places_.size()) return false;
  const KeyCollective& first = *parts.front();
  const std::size_t bytes = first.count * sizeOf(first.dtype);
  const auto behind = [bytes](const void* one, const void* start, std::size_t index) {
    return one == static_cast<const std::byte*>(start) + index * bytes;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const KeyCollective& part = *parts[i];
    if (part.index != i || part.root != i || part.count != first.count) return false;
    for (std::size_t place = 0; place < places_.size(); ++place) {
      const bool reads = part.kind != Kind::broadcast;
      const bool writes = part.kind != Kind::reduce;
      if (reads && !behind(part.in[place], first.in[place], i)) return false;
      if (writes && !behind(part.out[place], first.out[place], i)) return false;
    }
  }
  return true;
}

void GpuCollectives::join(const std::vector<KeyCollective*>& parts) {
  const KeyCollective& first = *parts.front();
  Memory memory{first.in, first.out};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i]->joined = true;
    if (first.kind == Kind::reduce) memory.out[i] = parts[i]->out[i];
    if (first.kind == Kind::broadcast) memory.in[i] = parts[i]->in[i];
  }
  if (first.kind == Kind::allReduce) {
    queue(first, Kind::allReduce, parts.size() * first.count, std::move(memory));
  } else {
    const bool reduces = first.kind == Kind::reduce;
    queue(first, reduces ? Kind::reduceScatter : Kind::allGather, first.count, std::move(memory));
  }
}

/// What has a root NCCL does not do within the memory of several GPUs, wherever it lies.
std::vector<std::byte*> GpuCollectives::buffersFor(Kind kind, std::size_t bytes) {
  if (kind == Kind::allReduce) return packs_.take(bytes);
  std::vector<std::byte*> buffers;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    buffers.push_back(static_cast<std::byte*>(places_[place].arena.take(bytes)));
  }
  return buffers;
}

/// One buffer a place, in which the collective works in place.
void GpuCollectives::pack(std::span<KeyCollective*> parts, std::span<GpuSums> packing) {
  const KeyCollective& first = *parts[0];
  const std::size_t size = sizeOf(first.dtype);
  std::size_t total = 0;
  for (const KeyCollective* part : parts) total += padded(part->count, part->dtype);
  const std::vector<std::byte*> buffers = buffersFor(first.kind, total * size);
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
  queue(first, first.kind, total,
        {{buffers.begin(), buffers.end()}, {buffers.begin(), buffers.end()}});
}

void GpuCollectives::queue(const KeyCollective& part, Kind kind, std::size_t count, Memory memory) {
  memory_.push_back(std::move(memory));
  nccl::Launch launch;
  launch.shape.kind = kind;
  launch.shape.dtype = part.dtype;
  launch.shape.count = count;
  if (hasRoot(kind)) launch.shape.root = static_cast<std::int32_t>(part.root);
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

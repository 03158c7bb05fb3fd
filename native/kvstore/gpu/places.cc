#include "kvstore/gpu/places.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cuda/kernel_module.h"
#include "cuda/kernels.h"

namespace gradlink {
namespace {

constexpr std::size_t kArenaBlock = std::size_t{8} << 20;
constexpr std::size_t kArenaAlignment = 256;

}  // namespace

void* GpuArena::take(std::size_t bytes) {
  bytes = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(device_, std::max(bytes, kArenaBlock));
    used_ = 0;
  }
  void* const memory = static_cast<std::byte*>(blocks_[block_].data()) + used_;
  used_ += bytes;
  return memory;
}

void GpuArena::reset() { block_ = used_ = 0; }

GpuPlaces::GpuPlaces(std::span<const int> gpus, bool peer) {
  for (const int gpu : gpus) {
    if (indexOf(gpu) != kHostPlace) continue;
    cuda::Device& device = cuda::Device::get(gpu);
    places_.push_back(std::make_unique<GpuPlace>(device));
  }
  reach_.resize(size() * size());
  for (std::size_t from = 0; from < size(); ++from) {
    for (std::size_t to = 0; to < size(); ++to) {
      reach_[from * size() + to] =
          from == to || (peer && places_[from]->device.enablePeer(places_[to]->device));
    }
  }
}

std::vector<cuda::Device*> GpuPlaces::devices() const {
  std::vector<cuda::Device*> devices;
  for (const auto& place : places_) devices.push_back(&place->device);
  return devices;
}

void GpuPlaces::prepare() {
  const std::vector<cuda::Device*> devices = this->devices();
  cuda::loadKernels(devices, {cuda::sumModule(DType::float32)});
  const bool allReach = std::find(reach_.begin(), reach_.end(), false) == reach_.end();
  if (!allReach) staging_ = std::make_unique<GpuStaging>(events_, devices);
}

std::size_t GpuPlaces::indexOf(int ordinal) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (places_[i]->device.ordinal() == ordinal) return i;
  }
  return kHostPlace;
}

std::size_t GpuPlaces::chooseOwner(std::size_t bytes) {
  const std::lock_guard lock(loads_);
  const auto lightest =
      std::min_element(places_.begin(), places_.end(),
                       [](const auto& a, const auto& b) { return a->load < b->load; });
  (*lightest)->load += bytes;
  return static_cast<std::size_t>(lightest - places_.begin());
}

void GpuPlaces::takeOwner(std::size_t place, std::size_t bytes) {
  const std::lock_guard lock(loads_);
  places_[place]->load += bytes;
}

void GpuPlaces::leaveOwner(std::size_t place, std::size_t bytes) {
  const std::lock_guard lock(loads_);
  places_[place]->load -= bytes;
}

bool GpuPlaces::isStaged(const GpuCopy& copy) const {
  const std::size_t to = copy.to.place;
  const std::size_t from = copy.from.place;
  // The driver copies directly where one of the two reaches the other.
  return to != kHostPlace && from != kHostPlace && !reaches(to, from) && !reaches(from, to);
}

void GpuPlaces::copy(std::size_t on, std::span<const GpuCopy> copies) {
  cuda::Stream& stream = places_[on]->stream;
  std::vector<GpuSpread> staged;
  for (const GpuCopy& copy : copies) {
    const auto& [to, from, bytes] = copy;
    if (isStaged(copy)) {
      // What goes to several places comes down once.
      if (staged.empty() || staged.back().from.data != from.data || staged.back().bytes != bytes) {
        staged.push_back({from, {}, bytes});
      }
      staged.back().to.push_back(to);
    } else if (to.place == from.place || to.place == kHostPlace || from.place == kHostPlace) {
      stream.copy(to.data, from.data, bytes);
    } else {
      stream.copyPeer(to.data, places_[to.place]->device, from.data, places_[from.place]->device,
                      bytes);
    }
  }
  if (staged.empty()) return;
  // Each place begins with the one behind it, so that no two ask the same one first.
  std::stable_sort(staged.begin(), staged.end(), [&](const GpuSpread& a, const GpuSpread& b) {
    const auto turn = [&](const GpuSpread& spread) {
      return (spread.from.place + size() - on) % size();
    };
    return turn(a) < turn(b);
  });
  staging_->copy(stream, staged);
}

bool GpuPlaces::quiesce() noexcept {
  const Deadline deadline = Deadline::in(kEndingMs);
  bool quiet = true;
  for (const auto& place : places_) quiet = gradlink::quiesce(place->stream, deadline) && quiet;
  if (staging_) quiet = staging_->quiesce(deadline) && quiet;
  return quiet;
}

}  // namespace gradlink

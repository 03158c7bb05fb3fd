#include "kvstore/gpu/places.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cuda/kernel_module.h"

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

GpuPlaces::GpuPlaces(std::span<const int> gpus) {
  for (const int gpu : gpus) {
    if (indexOf(gpu) != kHostPlace) continue;
    cuda::Device& device = cuda::Device::get(gpu);
    places_.push_back(std::make_unique<GpuPlace>(device));
  }
  reach_.resize(size() * size());
  for (std::size_t from = 0; from < size(); ++from) {
    for (std::size_t to = 0; to < size(); ++to) {
      reach_[from * size() + to] =
          from == to || places_[from]->device.enablePeer(places_[to]->device);
    }
  }
}

void GpuPlaces::loadKernels() {
  std::vector<cuda::Device*> devices;
  for (const auto& place : places_) devices.push_back(&place->device);
  cuda::loadKernels(devices, true);
}

std::size_t GpuPlaces::indexOf(int ordinal) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (places_[i]->device.ordinal() == ordinal) return i;
  }
  return kHostPlace;
}

std::size_t GpuPlaces::chooseHome(std::size_t bytes) {
  const auto lightest =
      std::min_element(places_.begin(), places_.end(),
                       [](const auto& a, const auto& b) { return a->load < b->load; });
  (*lightest)->load += bytes;
  return static_cast<std::size_t>(lightest - places_.begin());
}

void GpuPlaces::copy(std::size_t on, GpuArray to, GpuArray from, std::size_t bytes) {
  cuda::Stream& stream = places_[on]->stream;
  if (to.place == from.place || to.place == kHostPlace || from.place == kHostPlace) {
    stream.copy(to.data, from.data, bytes);
  } else {
    stream.copyPeer(to.data, places_[to.place]->device, from.data, places_[from.place]->device,
                    bytes);
  }
}

bool GpuPlaces::quiesce() noexcept {
  const Deadline deadline = Deadline::in(kEndingMs);
  bool quiet = true;
  for (const auto& place : places_) quiet = gradlink::quiesce(place->stream, deadline) && quiet;
  return quiet;
}

}  // namespace gradlink

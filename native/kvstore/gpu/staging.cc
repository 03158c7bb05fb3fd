#include "kvstore/gpu/staging.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gradlink {
namespace {

/// A copy of 2 MiB takes 40 to 170 us at 12 to 50 GB/s: the few microseconds that starting one
/// costs are little beside it, and of an array of 64 MiB a thirtieth does not overlap.
constexpr std::size_t kStagedPieceBytes = std::size_t{2} << 20;
/// What is on its way from one GPU: some pieces come down while others go up.
constexpr std::size_t kLaneBytes = 8 * kStagedPieceBytes;
/// Where pieces begin: whole lines of the caches, and what copy engines like.
constexpr std::size_t kStagedAlignment = 256;

}  // namespace

GpuStaging::Lane::Lane(cuda::Device& device)
    : device(device), down(device), up(device), memory(kLaneBytes) {}

GpuStaging::GpuStaging(GpuEvents& events, std::span<cuda::Device* const> devices)
    : events_(events) {
  for (cuda::Device* const device : devices) lanes_.push_back(std::make_unique<Lane>(*device));
}

GpuStaging::~GpuStaging() {
  for (const auto& lane : lanes_) {
    while (!lane->pieces.empty()) forgetOldest(*lane);
  }
}

void GpuStaging::copy(cuda::Stream& stream, std::span<const GpuSpread> spreads) {
  std::set<std::size_t> sources;
  std::set<std::size_t> targets;
  for (const GpuSpread& spread : spreads) {
    if (spread.bytes == 0) continue;
    sources.insert(spread.from.place);
    for (const GpuArray& to : spread.to) targets.insert(to.place);
  }
  GpuMarks before(events_, 0);
  before.add(stream);
  for (const std::size_t place : sources) before.holdUp(lanes_[place]->down);
  for (const GpuSpread& spread : spreads) copy(spread);
  GpuMarks after(events_, 0);
  for (const std::size_t place : targets) after.add(lanes_[place]->up);
  after.holdUp(stream);
}

void GpuStaging::copy(const GpuSpread& spread) {
  Lane& source = *lanes_[spread.from.place];
  for (std::size_t done = 0; done < spread.bytes; done += kStagedPieceBytes) {
    const std::size_t bytes = std::min(kStagedPieceBytes, spread.bytes - done);
    std::byte* const piece = reserve(source, bytes);
    source.down.copy(piece, static_cast<const std::byte*>(spread.from.data) + done, bytes);
    GpuMarks filled(events_, 0);
    filled.add(source.down);
    for (const GpuArray& to : spread.to) {
      Lane& target = *lanes_[to.place];
      filled.holdUp(target.up);
      target.up.copy(static_cast<std::byte*>(to.data) + done, piece, bytes);
      source.pieces.back().readers.push_back({&target.device, events_.record(target.up)});
    }
  }
}

/// Room for a piece that comes down next: behind those who still read what is there.
std::byte* GpuStaging::reserve(Lane& lane, std::size_t bytes) {
  const std::size_t length = (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
  if (lane.next + length > kLaneBytes) lane.next = 0;
  const std::size_t begin = lane.next;
  const std::size_t end = begin + length;
  const auto inTheWay = [&](const Piece& piece) { return piece.begin < end && begin < piece.end; };
  while (std::any_of(lane.pieces.begin(), lane.pieces.end(), inTheWay)) {
    for (const Reader& reader : lane.pieces.front().readers) lane.down.wait(*reader.past);
    forgetOldest(lane);
  }
  lane.next = end;
  lane.pieces.push_back({begin, end, {}});
  return static_cast<std::byte*>(lane.memory.data()) + begin;
}

void GpuStaging::forgetOldest(Lane& lane) {
  for (Reader& reader : lane.pieces.front().readers) {
    events_.giveBack(*reader.device, std::move(reader.past));
  }
  lane.pieces.pop_front();
}

bool GpuStaging::quiesce(Deadline deadline) noexcept {
  bool quiet = true;
  for (const auto& lane : lanes_) {
    for (cuda::Stream* stream : {&lane->down, &lane->up}) {
      quiet = gradlink::quiesce(*stream, deadline) && quiet;
    }
  }
  return quiet;
}

}  // namespace gradlink

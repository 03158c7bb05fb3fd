#include "kvstore/gpu_host_site.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/reduce_kernels.h"
#include "core/thread_pool.h"
#include "cuda/device.h"
#include "kvstore/gpu_updater_call.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// What one thread takes at a time of a sum.
constexpr std::size_t kSliceBytes = 256 << 10;

void sumSlices(void* to, const std::vector<const void*>& from, std::size_t count, DType dtype) {
  const std::size_t slice = kSliceBytes / sizeOf(dtype);
  const auto at = [&](const void* base, std::size_t first) {
    return static_cast<const std::byte*>(base) + first * sizeOf(dtype);
  };
  ThreadPool::shared().parallel((count + slice - 1) / slice, [&](std::size_t part) {
    const std::size_t first = part * slice;
    const std::size_t length = std::min(slice, count - first);
    void* const target = static_cast<std::byte*>(to) + first * sizeOf(dtype);
    if (from.size() == 1) {
      std::memcpy(target, at(from[0], first), length * sizeOf(dtype));
      return;
    }
    std::vector<const void*> sources;
    sources.reserve(from.size());
    for (const void* base : from) sources.push_back(at(base, first));
    reduceMany({&target, 1}, sources, length, dtype, ReduceOp::sum);
  });
}

}  // namespace

/// One unit's way through the host.
class GpuHostSite::Visit final : public GpuFlight {
 public:
  Visit(GpuHostSite& site, GpuUnit& unit) : site_(site), marks_(site.events_, site.timeoutMs_) {
    GpuKey& key = unit.key;
    // The inputs, and room for what is sent out where that is not the value itself.
    for (std::size_t i = 0; i < unit.in.size(); ++i) {
      const GpuArray& in = unit.in[i];
      if (in.place == kHostPlace) {
        arrived_.push_back(in.data);
        continue;
      }
      if (key.staged.size() <= i) key.staged.resize(i + 1);
      if (key.staged[i].bytes() < key.bytes()) key.staged[i] = cuda::PinnedMemory(key.bytes());
      cuda::Stream& down = site.places_[in.place]->down;
      down.copy(key.staged[i].data(), in.data, key.bytes());
      marks_.add(down);
      arrived_.push_back(key.staged[i].data());
    }
  }

  Progress advance() override {
    if (stage_ == Stage::arriving) {
      if (!marks_.passed()) return Progress::onDevice;
      compute();
      stage_ = Stage::computing;
    }
    if (stage_ == Stage::computing) {
      if (calls_ && !call_.done()) return Progress::elsewhere;
      sendOut();
      stage_ = Stage::leaving;
    }
    return marks_.passed() ? Progress::done : Progress::onDevice;
  }

 private:
  enum class Stage : std::uint8_t { arriving, computing, leaving };

  GpuUnit& unit() { return *units.front(); }

  void compute() {
    GpuKey& key = unit().key;
    if (unit().kind() == OperationKind::rowSparsePull) return gatherRows();
    if (arrived_.empty()) return;
    const GpuItem& head = unit().head();
    if (head.external) return callUpdater();
    if (!head.state) return sumSlices(key.hostValue.data(), arrived_, key.count, key.dtype);
    GpuKeyState& state = *head.state;
    if (!state.made) {
      state.state->arrays = std::move(
          state.optimizer->createState(key.name, key.hostValue.data(), key.count, key.dtype)
              ->arrays);
      state.made = true;
    }
    UpdateRun(*state.optimizer, *state.state, head.numbers, key.hostValue.data(), arrived_)
        .execute();
  }

  void callUpdater() {
    GpuKey& key = unit().key;
    // In place: the first of the arrays that have arrived is ours.
    void* const received = key.staged[0].data();
    if (arrived_.size() > 1) sumSlices(received, arrived_, key.count, key.dtype);
    calls_ = true;
    call_.start(*unit().head().external,
                {key.id, key.dtype, key.count, received, key.hostValue.data()}, site_.wake_);
  }

  void gatherRows() {
    GpuKey& key = unit().key;
    if (key.staged.empty()) key.staged.resize(1);
    if (key.staged[0].bytes() < key.bytes()) key.staged[0] = cuda::PinnedMemory(key.bytes());
    const std::size_t rowBytes = key.rowLength * sizeOf(key.dtype);
    auto* const image = static_cast<std::byte*>(key.staged[0].data());
    if (key.count != 0) std::memset(image, 0, key.bytes());
    for (const std::int64_t row : unit().head().operation.rows) {
      const std::size_t offset = static_cast<std::size_t>(row) * rowBytes;
      std::memcpy(image + offset, static_cast<std::byte*>(key.hostValue.data()) + offset, rowBytes);
    }
    outgoing_ = image;
  }

  void sendOut() {
    GpuKey& key = unit().key;
    const void* const from = outgoing_ != nullptr ? outgoing_ : key.hostValue.data();
    for (const GpuArray& out : unit().out) {
      cuda::Stream& up = site_.places_[out.place]->up;
      up.copy(out.data, from, key.bytes());
      marks_.add(up);
    }
  }

  GpuHostSite& site_;
  GpuMarks marks_;
  Stage stage_ = Stage::arriving;
  std::vector<const void*> arrived_;
  const void* outgoing_ = nullptr;
  bool calls_ = false;
  GpuUpdaterCall call_;
};

GpuHostSite::GpuHostSite(const GpuStoreOptions& options, std::function<void()> wake)
    : timeoutMs_(options.timeoutMs), wake_(std::move(wake)) {
  for (const int gpu : options.gpus) {
    if (placeOf(gpu) == kHostPlace) {
      places_.push_back(std::make_unique<Place>(cuda::Device::get(gpu)));
    }
  }
}

GpuHostSite::~GpuHostSite() = default;

std::size_t GpuHostSite::placeOf(int ordinal) const {
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const auto& place) {
    return place->device.ordinal() == ordinal;
  });
  return found == places_.end() ? kHostPlace : static_cast<std::size_t>(found - places_.begin());
}

void GpuHostSite::makeRoom(GpuKey& key) { key.hostValue = cuda::PinnedMemory(key.bytes()); }

void GpuHostSite::begin(std::vector<std::unique_ptr<GpuUnit>>& units, GpuFlights& flights) {
  for (auto& unit : units) {
    auto visit = std::make_unique<Visit>(*this, *unit);
    visit->units.push_back(std::move(unit));
    flights.push_back(std::move(visit));
  }
}

std::unique_ptr<OptimizerState> GpuHostSite::stateOf(const GpuKey& key) {
  const OptimizerState& from = *key.state->state;
  auto copy = std::make_unique<OptimizerState>(
      OptimizerState{from.key, from.dtype, from.count, from.updates, {}, from.lastLearningRate});
  for (const StateArray& array : from.arrays) {
    AlignedBuffer data(array.data.size());
    if (data.size() != 0) std::memcpy(data.data(), array.data.data(), data.size());
    copy->arrays.push_back({array.name, array.dtype, array.count, std::move(data)});
  }
  return copy;
}

bool GpuHostSite::quiesce() noexcept {
  const Deadline deadline = Deadline::in(kEndingMs);
  bool quiet = true;
  for (const auto& place : places_) {
    for (cuda::Stream* stream : {&place->down, &place->up}) {
      quiet = gradlink::quiesce(*stream, deadline) && quiet;
    }
  }
  return quiet;
}

}  // namespace gradlink

#include "kvstore/gpu/device_site.h"

#include <exception>
#include <string>
#include <utility>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "cuda/step.h"
#include "kvstore/gpu/call.h"
#include "kvstore/gpu/round.h"
#include "kvstore/gpu/shards.h"
#include "kvstore/gpu/step.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/optimizer/state_parts.h"

namespace gradlink {
/// Units that are done when all streams are past what was queued for them.
class GpuDeviceSite::Round final : public InFlight {
 public:
  explicit Round(GpuDeviceSite& site)
      : site_(site), marks_(site.places_.events(), site.options_.timeoutMs) {
    for (std::size_t i = 0; i < site.places_.size(); ++i) marks_.add(site.places_[i].stream);
  }

  Progress advance() override {
    try {
      if (marks_.passed()) {
        for (const auto& unit : units) unit->land();
        return Progress::done;
      }
      site_.nccl_.look();
    } catch (const Error& error) {
      // What the streams wait for will not come.
      site_.nccl_.abort(error.what());
      throw;
    }
    return Progress::onDevice;
  }

 private:
  GpuDeviceSite& site_;
  GpuMarks marks_;
};

/// Whether a push's new value is made on the host: by an outside function, or by a step that GPUs
/// do not take.
static bool updatesOnHost(const GpuUnit& unit) {
  const GpuItem& head = unit.head();
  return head.external || (head.state && stepsOnHost(unit.key(), *head.state->optimizer));
}

/// Such a push: sum and value go to the host, the new value comes back.
class GpuDeviceSite::HostUpdate final : public InFlight {
 public:
  /// `sum`: where what was pushed will be; null where it is rows, which are on the host.
  HostUpdate(GpuDeviceSite& site, GpuKey& key, const void* sum)
      : site_(site), key_(key), marks_(site.places_.events(), site.options_.timeoutMs) {
    key.copiesCurrent = false;
    cuda::Stream& stream = site.places_[key.owner].stream;
    if (sum != nullptr) stream.copy(received(), sum, key.bytes());
    stream.copy(stored(), key.value.data(), key.bytes());
    marks_.add(stream);
  }

  Progress advance() override {
    if (stage_ == Stage::coming) {
      if (!marks_.passed()) return Progress::onDevice;
      begin();
      stage_ = Stage::outside;
    }
    if (stage_ == Stage::outside) {
      if (head().external && !call_.done()) return Progress::elsewhere;
      sendBack();
      stage_ = Stage::going;
    }
    if (!marks_.passed()) return Progress::onDevice;
    units.front()->land();
    return Progress::done;
  }

 private:
  enum class Stage : std::uint8_t { coming, outside, going };

  const GpuItem& head() { return units.front()->head(); }
  void* received() { return key_.room(0); }
  void* stored() { return key_.room(1); }

  void begin() {
    if (head().external) {
      head().external->update({key_.id, key_.dtype, key_.count, received(), stored()},
                              call_.whenDone(site_.wake_));
      return;
    }
    KeyState& state = *head().state;
    makeOnHost(state, key_, stored());
    // A part's place is told from its key on, which may be a part of what workers share.
    if (key_.whole != nullptr) state.state->first = key_.whole->first + key_.first;
    if (key_.count == 0) return;
    const void* const sum = received();
    UpdateRun run(*state.optimizer, *state.state, head().numbers, stored(), {&sum, 1});
    if (units.front()->isLazy()) {
      run.runRows(units.front()->touched, key_.rowLength);
    } else {
      run.execute();
    }
  }

  void sendBack() {
    site_.prepareRound();
    site_.places_[key_.owner].stream.copy(key_.value.data(), stored(), key_.bytes());
    GpuRound round(site_.places_, nullptr, nullptr);
    round.addPull(*units.front());
    site_.launch(round);
    marks_.add(site_.places_[key_.owner].stream);
  }

  GpuDeviceSite& site_;
  GpuKey& key_;
  GpuMarks marks_;
  Stage stage_ = Stage::coming;
  GpuCall call_;
};

GpuDeviceSite::GpuDeviceSite(const GpuStoreOptions& options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      places_(options.gpus, options.peer),
      crossing_(places_.events(), 0),
      nccl_(usesNccl(options.merge, options.peer, options.gpus.size(), places_.size()), places_,
            options.gpus, options.timeoutMs, options.fuseBelowBytes) {}

GpuDeviceSite::~GpuDeviceSite() = default;

void GpuDeviceSite::loadSteps(const Optimizer& optimizer) noexcept {
  if (!runsOnGpus(optimizer.math().kernel)) return;
  try {
    cuda::loadSteps(places_.devices(), optimizer.math().kernel, optimizer.math().ratio);
  } catch (const std::exception&) {
    // The first step says it.
  }
}

bool GpuDeviceSite::blocksKey(const GpuUnit& unit) const {
  return updatesOnHost(unit) || unit.visitsHost();
}

void GpuDeviceSite::loadCompression() noexcept {
  try {
    cuda::loadKernels(places_.devices(), {"compression"});
  } catch (const std::exception&) {
    // The first push says it.
  }
}

void GpuDeviceSite::open() {
  places_.prepare();
  nccl_.open();
}

void GpuDeviceSite::makeRoom(GpuKey& key) {
  cuda::loadKernels(places_.devices(), {cuda::sumModule(key.dtype)});
  key.owner = places_.chooseOwner(key.bytes());
  key.value = cuda::DeviceMemory(places_[key.owner].device, key.bytes());
}

void GpuDeviceSite::makeRoomInParts(GpuKey& key) {
  cuda::loadKernels(places_.devices(), {cuda::sumModule(key.dtype)});
  makePartsRoom(key, places_);
}

/// The memory of earlier rounds is free again for each stream, but for what others still read.
void GpuDeviceSite::prepareRound() {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    places_[i].arena.reset();
    crossing_.holdUp(places_[i].stream);
  }
  crossing_.clear();
  nccl_.reset();
}

void GpuDeviceSite::launch(GpuRound& round) {
  round.launch();
  if (!round.crossesPlaces()) return;
  for (std::size_t i = 0; i < places_.size(); ++i) crossing_.add(places_[i].stream);
}

void GpuDeviceSite::begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) {
  prepareRound();
  nccl_.registerPacks();
  const std::unique_ptr<GpuCollectives> collectives = nccl_.collectives();
  GpuRound round(places_, compression_, collectives.get());
  struct OnHost {
    std::unique_ptr<GpuUnit>* unit;
    const void* sum;
  };
  std::vector<OnHost> onHost;
  for (auto& unit : units) {
    if (unit->ofRows()) unit->gatherRows();
    if (updatesOnHost(*unit)) {
      onHost.push_back({&unit, unit->isLazy() ? nullptr : round.addSum(*unit)});
    } else if (unit->isLazy()) {
      round.addRowUpdate(*unit);
    } else if (unit->kind() == OperationKind::rowSparsePull) {
      round.addRows(*unit);
    } else if (unit->in.empty()) {
      round.addPull(*unit);
    } else {
      round.addPush(*unit);
    }
  }
  launch(round);
  for (const OnHost& one : onHost) {
    inFlight.push_back(std::make_unique<HostUpdate>(*this, (*one.unit)->key(), one.sum));
    inFlight.back()->units.push_back(std::move(*one.unit));
  }
  std::erase(units, nullptr);
  if (units.empty()) return;
  inFlight.push_back(std::make_unique<Round>(*this));
  inFlight.back()->units = std::move(units);
}

std::unique_ptr<OptimizerState> GpuDeviceSite::stateOf(const GpuKey& key) {
  const KeyState& state = *key.state;
  if (stepsOnHost(key, *state.optimizer)) {
    if (key.whole == nullptr) return nullptr;
    return std::make_unique<OptimizerState>(cutState(*state.state, 0, key.count));
  }
  return downloadState(*key.state, places_[key.owner]);
}

void GpuDeviceSite::restoreState(GpuKey& key, KeyState& state) {
  if (!stepsOnHost(key, *state.optimizer)) uploadState(state, places_[key.owner]);
}

}  // namespace gradlink

#include "kvstore/staged/gpu_dist_site.h"

#include <algorithm>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "cuda/kernel_module.h"
#include "cuda/kernels.h"
#include "kvstore/gpu/call.h"
#include "kvstore/gpu/round.h"

namespace gradlink {
namespace {

/// Smaller arrays are packed into one buffer for NCCL.
constexpr std::size_t kFuseBelowBytes = 64 << 10;

}  // namespace

class GpuDistSite::HostTransfer final : public InFlight {
 public:
  /// `sum`: the buffer for the sum on the key's owner; null if arrays go to the host unsummed.
  HostTransfer(GpuDistSite& site, GpuUnit& unit, const void* sum)
      : site_(site), marks_(site.places_.events(), site.options_.timeoutMs) {
    if (sum != nullptr) {
      arrive(unit.key(), 0, {const_cast<void*>(sum), unit.key().owner});
      return;
    }
    for (std::size_t i = 0; i < unit.in.size(); ++i) arrive(unit.key(), i, unit.in[i]);
  }

  Progress advance() override {
    if (stage_ == Stage::arriving) {
      if (!arrivedAll()) return Progress::onDevice;
      ask();
      stage_ = Stage::asking;
    }
    if (stage_ == Stage::asking) {
      if (!call_.done()) return Progress::elsewhere;
      sendOut();
      stage_ = Stage::leaving;
    }
    return marks_.passed() ? Progress::done : Progress::onDevice;
  }

 private:
  enum class Stage : std::uint8_t { arriving, asking, leaving };

  GpuUnit& unit() { return *units.front(); }

  bool arrivedAll() {
    try {
      if (marks_.passed()) return true;
      site_.nccl_.look();
      return false;
    } catch (const Error& error) {
      // Otherwise the streams would wait forever.
      site_.nccl_.abort(error.what());
      throw;
    }
  }

  void arrive(GpuKey& key, std::size_t index, GpuArray from) {
    if (from.place == kHostPlace) {
      arrived_.push_back(from.data);
      return;
    }
    void* const to = key.room(index);
    cuda::Stream& down = site_.places_[from.place].stream;
    down.copy(to, from.data, key.bytes());
    marks_.add(down);
    arrived_.push_back(to);
  }

  void ask() {
    const GpuOperation& head = *unit().head().operation;
    Operation operation;
    operation.kind = head.kind;
    operation.key = unit().key().id;
    operation.rows = head.rows;
    operation.inRows = head.inRows;
    operation.priority = unit().head().priority;
    for (const GpuItem& item : unit().items) {
      operation.priority = std::max(operation.priority, item.priority);
    }
    operation.in = arrived_;
    // In place, if the first arrived array is ours.
    if (!unit().out.empty()) operation.out = {unit().key().room(0)};
    operation.ticket = std::make_shared<Ticket>(call_.whenDone(site_.wake_));
    std::vector<Operation> operations;
    operations.push_back(std::move(operation));
    site_.inner_.submit(std::move(operations));
  }

  void sendOut() {
    GpuKey& key = unit().key();
    for (const GpuArray& out : unit().out) {
      if (out.place == kHostPlace) {
        copyBytes(out.data, key.room(0), key.bytes());
        continue;
      }
      cuda::Stream& up = *site_.up_[out.place];
      up.copy(out.data, key.room(0), key.bytes());
      marks_.add(up);
    }
  }

  GpuDistSite& site_;
  GpuMarks marks_;
  Stage stage_ = Stage::arriving;
  std::vector<const void*> arrived_;
  GpuCall call_;
};

GpuDistSite::GpuDistSite(Store& inner, const GpuDistOptions& options, std::function<void()> wake)
    : inner_(inner),
      options_(options),
      wake_(std::move(wake)),
      places_(options.gpus),
      nccl_(!options.onHost && usesNccl(options.merge, true, options.gpus.size(), places_.size()),
            places_, options.gpus, options.timeoutMs, kFuseBelowBytes) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    up_.push_back(std::make_unique<cuda::Stream>(places_[i].device));
  }
}

GpuDistSite::~GpuDistSite() = default;

void GpuDistSite::makeRoom(GpuKey& key) {
  if (!options_.onHost) cuda::loadKernels(places_.devices(), {cuda::sumModule(key.dtype)});
  key.owner = places_.chooseOwner(key.bytes());
  key.staged.emplace_back(key.bytes());
}

void GpuDistSite::open() {
  if (!options_.onHost) places_.prepare();
  nccl_.open();
}

void GpuDistSite::begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) {
  // Streams run in order, so the memory can be reused.
  for (std::size_t i = 0; i < places_.size(); ++i) places_[i].arena.reset();
  nccl_.reset();
  nccl_.registerPacks();
  const std::unique_ptr<GpuCollectives> collectives = nccl_.collectives();
  GpuRound round(places_, nullptr, collectives.get());
  struct Sum {
    const void* at = nullptr;
    const GpuCollectives::KeyCollective* shared = nullptr;
  };
  std::vector<Sum> summed(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!sums(*units[i])) continue;
    summed[i].shared = round.shareSum(*units[i]);
    if (summed[i].shared == nullptr) summed[i].at = round.addSum(*units[i]);
  }
  round.launch();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto& [at, shared] = summed[i];
    const void* const sum = shared == nullptr ? at : shared->result(units[i]->key().owner);
    auto transfer = std::make_unique<HostTransfer>(*this, *units[i], sum);
    transfer->units.push_back(std::move(units[i]));
    inFlight.push_back(std::move(transfer));
  }
  units.clear();
}

bool GpuDistSite::quiesce() noexcept {
  const Deadline deadline = Deadline::in(kEndingMs);
  bool quiet = places_.quiesce();
  for (const auto& stream : up_) quiet = gradlink::quiesce(*stream, deadline) && quiet;
  return quiet;
}

}  // namespace gradlink

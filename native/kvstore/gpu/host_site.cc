#include "kvstore/gpu/host_site.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "core/thread_pool.h"
#include "cuda/device.h"
#include "kvstore/gpu/call.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// What one thread takes at a time of a sum.
constexpr std::size_t kSliceBytes = 256 << 10;

/// Larger keys are cut into so much. A copy of 4 MiB takes about 75 us at 55 GB/s, so that the few
/// microseconds that starting one costs are little beside it; there are slices for 16 threads in
/// it; and what cannot overlap, the first piece's way down and the last one's way up, is a
/// sixteenth of a key of 64 MiB. A multiple of a slice and of what optimizers take at a time, so
/// that results do not depend on it.
constexpr std::size_t kPieceBytes = 4 << 20;
static_assert(kPieceBytes % kSliceBytes == 0);
static_assert(kPieceBytes % (kUpdateBlock * sizeof(double)) == 0);

/// Elements of the piece, from and to where element 0 of each array is.
void sumSlices(void* all, const std::vector<const void*>& from, ElementRange piece, DType dtype) {
  const std::size_t slice = kSliceBytes / sizeOf(dtype);
  const std::size_t count = piece.count;
  void* const to = static_cast<std::byte*>(all) + piece.first * sizeOf(dtype);
  const auto at = [&](const void* base, std::size_t first) {
    return static_cast<const std::byte*>(base) + (piece.first + first) * sizeOf(dtype);
  };
  ThreadPool::shared().parallel((count + slice - 1) / slice, [&](std::size_t part) {
    const std::size_t first = part * slice;
    const std::size_t length = std::min(slice, count - first);
    void* const target = static_cast<std::byte*>(to) + first * sizeOf(dtype);
    if (from.size() == 1) {
      copyBytes(target, at(from[0], first), length * sizeOf(dtype));
      return;
    }
    std::vector<const void*> sources;
    sources.reserve(from.size());
    for (const void* base : from) sources.push_back(at(base, first));
    reduceMany({&target, 1}, sources, length, dtype, ReduceOp::sum);
  });
}

/// Whether an array that is written shares memory with another one of them, but not element by
/// element: then a piece that leaves would overwrite what has not arrived.
bool isEntangled(const GpuUnit& unit) {
  const std::uintptr_t bytes = unit.key().bytes();
  const auto apart = [bytes](const void* one, const void* other) {
    const auto a = reinterpret_cast<std::uintptr_t>(one);
    const auto b = reinterpret_cast<std::uintptr_t>(other);
    return a == b || a + bytes <= b || b + bytes <= a;
  };
  return std::ranges::any_of(unit.out, [&](const GpuArray& out) {
    const auto touches = [&](const GpuArray& other) { return !apart(out.data, other.data); };
    return std::ranges::any_of(unit.in, touches) || std::ranges::any_of(unit.out, touches);
  });
}

}  // namespace

/// One unit's way through the host. A large key goes in pieces: while one is summed, the next ones
/// arrive and the ones before leave.
class GpuHostSite::Visit final : public InFlight {
 public:
  Visit(GpuHostSite& site, GpuUnit& unit) : site_(site), leaving_(site.events_, site.timeoutMs_) {
    GpuKey& key = unit.key();
    if (unit.ofRows()) unit.gatherRows();
    for (std::size_t i = 0; i < unit.in.size(); ++i) {
      if (unit.in[i].place == kHostPlace) {
        arrived_.push_back(unit.in[i].data);
      } else {
        arrived_.push_back(key.room(i));
      }
    }
    cut(unit);
    for (const ElementRange& piece : pieces_) {
      GpuMarks& marks = arriving_.emplace_back(site.events_, site.timeoutMs_);
      for (std::size_t i = 0; i < unit.in.size(); ++i) {
        const GpuArray& in = unit.in[i];
        if (in.place == kHostPlace) continue;
        cuda::Stream& down = site.places_[in.place]->down;
        const std::size_t offset = piece.first * sizeOf(key.dtype);
        down.copy(static_cast<std::byte*>(key.room(i)) + offset,
                  static_cast<const std::byte*>(in.data) + offset, piece.count * sizeOf(key.dtype));
        marks.add(down);
      }
    }
  }

  Progress advance() override {
    if (stage_ == Stage::arriving) {
      for (; taken_ < pieces_.size(); ++taken_) {
        if (!arriving_[taken_].passed()) return Progress::onDevice;
        compute(pieces_[taken_]);
      }
      if (update_) finishUpdate();
      stage_ = Stage::computing;
    }
    if (stage_ == Stage::computing) {
      if (calls_ && !call_.done()) return Progress::elsewhere;
      send(unit().key().count);
      for (const GpuArray& out : unit().out) {
        if (out.place != kHostPlace) leaving_.add(site_.places_[out.place]->up);
      }
      stage_ = Stage::leaving;
    }
    return leaving_.passed() ? Progress::done : Progress::onDevice;
  }

 private:
  enum class Stage : std::uint8_t { arriving, computing, leaving };

  GpuUnit& unit() { return *units.front(); }

  /// Only what is computed here, element by element, can be in pieces.
  void cut(const GpuUnit& unit) {
    const std::size_t count = unit.key().count;
    const bool whole =
        unit.in.empty() || unit.head().external || unit.isLazy() || isEntangled(unit);
    const std::size_t most =
        whole ? std::max<std::size_t>(count, 1) : kPieceBytes / sizeOf(unit.key().dtype);
    std::size_t first = 0;
    do {
      pieces_.push_back({first, std::min(most, count - first)});
      first += most;
    } while (first < count);
  }

  void compute(ElementRange piece) {
    GpuKey& key = unit().key();
    if (unit().kind() == OperationKind::rowSparsePull) return gatherRows();
    if (arrived_.empty()) return;
    const GpuItem& head = unit().head();
    if (head.external) return callUpdater();
    if (!head.state) {
      sumSlices(key.hostValue.data(), arrived_, piece, key.dtype);
      return send(piece.first + piece.count);
    }
    if (unit().isLazy()) return updateRows();
    if (!update_) beginUpdate();
    runUpdate(0, piece);
  }

  void updateRows() {
    if (unit().key().count == 0) return;
    beginUpdate();
    update_->runRows(unit().touched, unit().key().rowLength);
    update_.reset();  // these rows have had all phases
  }

  void beginUpdate() {
    GpuKey& key = unit().key();
    const GpuItem& head = unit().head();
    KeyState& state = *head.state;
    makeOnHost(state, key, key.hostValue.data());
    update_ = std::make_unique<UpdateRun>(*state.optimizer, *state.state, head.numbers,
                                          key.hostValue.data(), arrived_);
  }

  void runUpdate(int phase, ElementRange piece) {
    const std::size_t end = piece.first + piece.count;
    update_->runOnPool(phase, piece.first / kUpdateBlock, (end + kUpdateBlock - 1) / kUpdateBlock);
    if (phase + 1 == update_->phases()) send(end);
  }

  /// The phases that need all that has arrived.
  void finishUpdate() {
    update_->endPhase(0);
    for (int phase = 1; phase < update_->phases(); ++phase) {
      for (const ElementRange& piece : pieces_) runUpdate(phase, piece);
      update_->endPhase(phase);
    }
  }

  void callUpdater() {
    GpuKey& key = unit().key();
    // In place, where the first of the arrays that have arrived is ours.
    void* const received = key.room(0);
    if (arrived_.size() > 1 || arrived_[0] != received)
      sumSlices(received, arrived_, {0, key.count}, key.dtype);
    calls_ = true;
    unit().head().external->update({key.id, key.dtype, key.count, received, key.hostValue.data()},
                                   call_.whenDone(site_.wake_));
  }

  void gatherRows() {
    GpuKey& key = unit().key();
    const std::size_t rowBytes = key.rowLength * sizeOf(key.dtype);
    auto* const image = static_cast<std::byte*>(key.room(0));
    if (key.count != 0) std::memset(image, 0, key.bytes());
    for (const std::int64_t row : unit().head().operation->rows) {
      const std::size_t offset = static_cast<std::size_t>(row) * rowBytes;
      copyBytes(image + offset, static_cast<std::byte*>(key.hostValue.data()) + offset, rowBytes);
    }
    outgoing_ = image;
  }

  /// Sends out what has not been sent yet of the elements before `end`.
  void send(std::size_t end) {
    GpuKey& key = unit().key();
    const void* const from = outgoing_ != nullptr ? outgoing_ : key.hostValue.data();
    const std::size_t offset = sent_ * sizeOf(key.dtype);
    const std::size_t bytes = (end - sent_) * sizeOf(key.dtype);
    sent_ = end;
    if (bytes == 0) return;
    const auto* const source = static_cast<const std::byte*>(from) + offset;
    for (const GpuArray& out : unit().out) {
      auto* const target = static_cast<std::byte*>(out.data) + offset;
      if (out.place == kHostPlace) {
        copyBytes(target, source, bytes);
      } else {
        site_.places_[out.place]->up.copy(target, source, bytes);
      }
    }
  }

  GpuHostSite& site_;
  std::vector<const void*> arrived_;
  std::vector<ElementRange> pieces_;
  /// Of each piece.
  std::deque<GpuMarks> arriving_;
  GpuMarks leaving_;
  Stage stage_ = Stage::arriving;
  /// Pieces that have arrived and are computed.
  std::size_t taken_ = 0;
  std::unique_ptr<UpdateRun> update_;
  const void* outgoing_ = nullptr;
  std::size_t sent_ = 0;
  bool calls_ = false;
  GpuCall call_;
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

void GpuHostSite::begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) {
  for (auto& unit : units) {
    auto visit = std::make_unique<Visit>(*this, *unit);
    visit->units.push_back(std::move(unit));
    inFlight.push_back(std::move(visit));
  }
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

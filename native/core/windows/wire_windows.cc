#include "core/windows/wire_windows.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/windows/arithmetic.h"
#include "core/windows/service.h"
#include "core/windows/table.h"

namespace gradlink {
namespace {

std::shared_ptr<ServedWindow> makeServed(WindowService& service, const WindowSpec& spec,
                                         const WireWindows::MakeMemory& make) {
  if (make) return std::make_shared<ServedWindow>(nullptr, make(spec, service.size()));
  WirePart own = service.allocate(spec.count * sizeOf(spec.dtype));
  void* const array = own.get();
  return std::make_shared<ServedWindow>(
      std::move(own), std::make_unique<HostWindowMemory>(spec, service.size(), array));
}

/// The windows with one number of the ranks held here.
struct Opened {
  Communicator& communicator;
  const std::shared_ptr<WindowService> service;
  const std::uint32_t id;
  std::size_t open;
};

class WireWindow final : public Window {
 public:
  using What = WindowRequest::What;

  WireWindow(std::shared_ptr<Opened> opened, int rank, const WindowSpec& spec,
             const WireWindows::MakeMemory& make)
      : opened_(std::move(opened)),
        communicator_(opened_->communicator),
        service_(opened_->service),
        id_(opened_->id),
        rank_(rank),
        destinations_(spec.destinations),
        served_(makeServed(*service_, spec, make)) {
    service_->serve(id_, rank_, served_);
  }

  void* data() override { return served_->memory->data(); }

  void put(void* values, std::span<const Neighbor> destinations, double selfWeight, bool accumulate,
           bool withP, Deadline deadline) override {
    checkOpen();
    WindowMemory& memory = *served_->memory;
    checkWindowWeight(memory.dtype(), selfWeight);
    for (const Neighbor& to : destinations) {
      checkDestination(to.rank);
      checkWindowWeight(memory.dtype(), to.weight);
    }
    if (!destinations.empty()) {
      WirePart from = served_->own;
      if (from == nullptr || values != data()) {
        from = service_->spareOf(*served_);
        memory.copyOut(from.get(), values);
      }
      WindowService::Round round(*service_, rank_, accumulate ? "accumulate" : "put");
      for (const Neighbor& to : destinations) {
        WindowRequest request = asking(accumulate ? What::accumulate : What::put);
        request.weight = to.weight;
        request.withP = withP ? 1 : 0;
        request.p = memory.p();
        round.ask(to.rank, request, from, memory.bytes());
      }
      round.wait(communicator_, deadline);
    }
    if (selfWeight != 1) memory.scale(values, selfWeight, withP);
  }

  void get(std::span<const Neighbor> sources, bool withP, Deadline deadline) override {
    checkOpen();
    for (const Neighbor& from : sources) checkWindowWeight(served_->memory->dtype(), from.weight);
    WindowService::Round round(*service_, rank_, "get");
    for (const Neighbor& from : sources) {
      WindowRequest request = asking(What::get);
      request.weight = from.weight;
      request.withP = withP ? 1 : 0;
      round.ask(from.rank, request, nullptr, 0, served_);
    }
    round.wait(communicator_, deadline);
  }

  void update(void* out, double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
              bool reset, bool withP, Deadline /*nobody else keeps an array*/) override {
    checkOpen();
    checkWindowWeight(served_->memory->dtype(), selfWeight);
    for (const Neighbor& from : sources) checkWindowWeight(served_->memory->dtype(), from.weight);
    served_->memory->update(out, selfWeight, sources, divisor, reset, withP);
  }

  std::vector<std::uint64_t> versions() override { return served_->memory->versions(); }
  double p() override { return served_->memory->p(); }

  int tryLock(int owner, int other) override {
    checkOpen();
    if (checkLock(owner, other) == rank_) {
      const int holder = served_->memory->tryLock(other, rank_);
      if (holder != kLocked) service_->checkHere("withMutex", holder);
      return holder;
    }
    WindowService::Round round(*service_, rank_, "withMutex");
    round.ask(owner, asking(What::lock), nullptr, 0);
    return round.wait(communicator_, Deadline::in(communicator_.timeoutMs()));
  }

  void unlock(int owner, int other) override {
    if (checkLock(owner, other) == rank_) return served_->memory->unlock(other);
    WindowService::Round round(*service_, rank_, "withMutex");
    try {
      round.ask(owner, asking(What::unlock), nullptr, 0);
    } catch (const Error& error) {
      // The locks have gone with their owner.
      if (error.code != ErrorCode::peerLost && error.code != ErrorCode::closed) throw;
    }
  }

  void free(const CallOptions& options) override {
    checkOpen();
    // Peers may access windows until the last of this process is freed.
    if (opened_->open == 1) communicator_.barrier(options);
    freed_ = true;
    if (--opened_->open == 0) service_->forget(id_);
  }

 private:
  WindowRequest asking(What what) const {
    WindowRequest request;
    request.what = what;
    request.window = id_;
    return request;
  }
  void checkOpen() const {
    if (freed_) throw misuse("window", "it was freed");
  }
  void checkDestination(int rank) const {
    for (const int destination : destinations_) {
      if (destination == rank) return;
    }
    throw misuse("window", "rank " + std::to_string(rank_) + " is not a source of rank " +
                               std::to_string(rank));
  }
  /// A rank asks for a lock of its own memory, or for its own lock of another's.
  int checkLock(int owner, int other) const {
    const int size = service_->size();
    const bool known = owner >= 0 && owner < size && other >= 0 && other < size;
    if (known && (owner == rank_ || other == rank_)) return owner;
    throw misuse("window",
                 "expected a lock of this rank and another of 0.." + std::to_string(size - 1));
  }

  const std::shared_ptr<Opened> opened_;
  Communicator& communicator_;
  const std::shared_ptr<WindowService> service_;
  const std::uint32_t id_;
  const int rank_;
  const std::vector<int> destinations_;
  const std::shared_ptr<ServedWindow> served_;
  bool freed_ = false;
};

}  // namespace

WireWindows::WireWindows() = default;
WireWindows::~WireWindows() { close(); }

std::unique_ptr<Window> WireWindows::open(Communicator& communicator, const WindowSpec& spec,
                                          const CallOptions& options, const MakeMemory& make) {
  WindowRanks ranks;
  ranks.held.assign(communicator.heldRanks().begin(), communicator.heldRanks().end());
  ranks.holders.resize(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.holders.begin(), ranks.holders.end(), 0);
  ranks.exchange = exchangeOver(communicator, options);
  return std::move(open(communicator, ranks, {&spec, 1}, {&make, 1}, options).front());
}

std::vector<std::unique_ptr<Window>> WireWindows::open(Communicator& communicator,
                                                       const WindowRanks& ranks,
                                                       std::span<const WindowSpec> specs,
                                                       std::span<const MakeMemory> make,
                                                       const CallOptions& options) {
  if (!service_) {
    service_ = std::make_shared<WindowService>(ranks.all ? nullptr : communicator.openWire(options),
                                               ranks.holders);
  }
  auto opened = std::make_shared<Opened>(Opened{communicator, service_, next_++, specs.size()});
  std::vector<std::unique_ptr<Window>> windows;
  try {
    // Before any peer can know of them.
    for (std::size_t i = 0; i < specs.size(); ++i) {
      windows.push_back(std::make_unique<WireWindow>(opened, ranks.held[i], specs[i], make[i]));
    }
    WindowTable(specs, service_->size(), ranks.exchange);
  } catch (...) {
    service_->forget(opened->id);
    throw;
  }
  return windows;
}

void WireWindows::close() {
  if (service_) service_->close();
}

}  // namespace gradlink

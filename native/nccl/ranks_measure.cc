// Additional functions for measuring: the library's estimates, and registered memory.
#include <algorithm>
#include <utility>

#include "cuda/abi_numbers.h"
#include "cuda/kept_memory.h"
#include "cuda/memory.h"
#include "nccl/queue.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// The library only estimates its own collectives.
bool hasModel(const Library& library, const Shape& shape) {
  if (!isPlain(shape.kind) || shape.kind == Kind::barrier) return false;
  return shape.count > 0 && hasFunction(library, shape.kind);
}

/// The library's handles for each held rank's memory; one of the two is null.
struct Handles {
  std::vector<void*> local;
  std::vector<abi::WindowHandle> windows;

  explicit Handles(std::size_t ranks) : local(ranks), windows(ranks) {}

  /// Call with the communicator's mutex. The end of a communicator also ends its registrations.
  void release(const Library& library, const Comms& comms) {
    for (std::size_t i = 0; i < local.size(); ++i) {
      abi::CommHandle comm = comms.members()[i]->handle;
      if (comm == nullptr) continue;
      if (local[i] != nullptr) library.commDeregister(comm, local[i]);
      if (windows[i] != nullptr) library.commWindowDeregister(comm, windows[i]);
    }
  }
};

class RankRegistration final : public Registration {
 public:
  RankRegistration(const Library& library, std::shared_ptr<Core> core, RegistrationKind kind,
                   Handles handles)
      : library_(library), core_(std::move(core)), kind_(kind), handles_(std::move(handles)) {}
  ~RankRegistration() override {
    const SweepAfter sweep(*core_);
    const std::lock_guard lock(core_->calls);
    handles_.release(library_, core_->comms);
  }

  RegistrationKind kind() const override { return kind_; }

 private:
  const Library& library_;
  std::shared_ptr<Core> core_;
  RegistrationKind kind_;
  Handles handles_;
};

cuda::MemorySource sourceOf(cuda::Device& device) {
  return {&device,
          [](void** memory, std::size_t bytes) {
            return Library::get().memAlloc(memory, bytes) == abi::kSuccess ? cuda::kSuccess
                                                                           : cuda::kOutOfMemory;
          },
          [](void* memory) { Library::get().memFree(memory); }};
}

}  // namespace

Memory::Memory(cuda::Device& device, std::size_t bytes) : device_(&device), bytes_(bytes) {
  if (bytes == 0) return;
  if (Library::get().memAlloc != nullptr &&
      cuda::takeMemory(sourceOf(device), bytes, &own_) == cuda::kSuccess) {
    return;
  }
  own_ = nullptr;
  // Reports missing memory better than the library does.
  plain_ = cuda::DeviceMemory(device, bytes);
}

Memory::Memory(Memory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      own_(std::exchange(other.own_, nullptr)),
      plain_(std::move(other.plain_)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(own_, other.own_);
  std::swap(plain_, other.plain_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (own_ != nullptr) cuda::giveMemoryBack(sourceOf(*device_), bytes_, own_);
}

double Ranks::simulate(const Comms& comms, const Shape& shape,
                       std::span<const cuda::DeviceMemory> places, const Watch& watch) {
  abi::Simulation simulation;
  Group group(library_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Comms::Member& member = *comms.members()[i];
    auto* place = static_cast<char*>(places[i].data());
    member.device.makeCurrent();
    const RankCall part{shape, place, place + 256, abi::opOf(shape.op, size_),
                        member.stream.handle()};
    const abi::Result result = queuePart(library_, member, size_, part);
    if (isFailure(result)) throw library_.failure(result, watch.op).withRank(member.rank);
  }
  const abi::Result end = group.simulate(simulation);
  if (isFailure(end)) throw library_.failure(end, watch.op);
  return simulation.estimatedTime * 1e-6;
}

// A one-rank communicator copies immediately, without a group; a non-blocking one runs the group
// for real. So neither may be simulated.
std::vector<std::optional<double>> Ranks::estimateSeconds(std::span<const Shape> shapes,
                                                          const CallOptions& options) {
  std::vector<std::optional<double>> seconds(shapes.size());
  guarded("estimateSeconds", options, [&](const Watch& watch) {
    for (const Shape& shape : shapes) checkShape(shape, size_, true);
    if (library_.groupSimulateEnd == nullptr || size_ == 1) return;
    const auto known = [this](const Shape& shape) {
      return hasModel(library_, shape) && takesType(shape.dtype, hasOp(shape.kind));
    };
    if (std::ranges::none_of(shapes, known)) return;
    for (const Shape& shape : shapes) agree(shape, watch);
    const std::vector<UniqueId> ids = shareIds(watch);
    // Its buffers are as large as the communicator's own, so it lives only for the estimates.
    Comms comms(ranks_, devices_, size_);
    comms.open(ids, watch, true);
    // The library checks addresses, but does not access the memory.
    std::vector<cuda::DeviceMemory> places;
    for (cuda::Device* device : devices_) places.emplace_back(*device, 512);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (!known(shapes[i])) continue;
      const double estimated = simulate(comms, shapes[i], places, watch);
      if (estimated > 0) seconds[i] = estimated;
    }
    comms.close(watch.deadline);
  });
  return seconds;
}

void Ranks::enqueueMessages(const char* op, const MessageSteps& steps, const Buffers& buffers,
                            DType dtype, std::span<cuda::Stream* const> streams,
                            const CallOptions& options) {
  const std::size_t element = sizeOf(dtype);
  const auto place = [&](const void* base, std::size_t at) {
    return static_cast<const char*>(base) + at * element;
  };
  guarded(op, options, [&](const Watch& watch) {
    checkType(op, dtype, false);
    checkStreams(op, streams);
    needMet(op);
    if (buffers.in.size() != ranks_.size() || buffers.out.size() != ranks_.size()) {
      throw misuse(op, "expected an input and an output for each rank held");
    }
    for (const std::vector<PlannedMessage>& step : steps) {
      bool sends = false;
      for (const PlannedMessage& one : step) {
        sends = sends || !one.isCopy;
        if (!one.isCopy) continue;
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
          void* const to = static_cast<char*>(buffers.out[i]) + one.target * element;
          const void* const from = place(buffers.in[i], one.source);
          if (one.to == ranks_[i] && to != from) streams[i]->copy(to, from, one.count * element);
        }
      }
      if (!sends) continue;
      core_->comms.group(watch, [&](std::size_t i) {
        abi::CommHandle comm = core_->comms.members()[i]->handle;
        cuda::StreamHandle stream = streams[i]->handle();
        abi::Result result = abi::kSuccess;
        for (const PlannedMessage& one : step) {
          if (one.isCopy) continue;
          if (one.from == ranks_[i] && !isFailure(result)) {
            const void* const base = one.ofOutput ? buffers.out[i] : buffers.in[i];
            result = library_.send(place(base, one.source), one.count, abi::movedAs(dtype), one.to,
                                   comm, stream);
          }
          if (one.to == ranks_[i] && !isFailure(result)) {
            result = library_.recv(static_cast<char*>(buffers.out[i]) + one.target * element,
                                   one.count, abi::movedAs(dtype), one.from, comm, stream);
          }
        }
        return result;
      });
    }
  });
}

std::unique_ptr<Registration> Ranks::registerMemory(std::span<void* const> memory,
                                                    std::size_t bytes, RegistrationKind kind,
                                                    const CallOptions& options) {
  std::unique_ptr<Registration> made;
  guarded("registerMemory", options, [&](const Watch& watch) {
    needMet(watch.op);
    if (memory.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " addresses, one for each rank held, got " +
                                 std::to_string(memory.size()));
    }
    const bool asked =
        kind == RegistrationKind::symmetric && library_.commWindowRegister != nullptr;
    if (!asked && library_.commRegister == nullptr) {
      throw unsupported(watch.op, "NCCL " + versionText(library_.info.version) +
                                      " cannot register memory (ncclCommRegister, since 2.19)");
    }
    Handles handles(ranks_.size());
    const auto each = [&](bool windows) {
      core_->comms.group(watch, [&](std::size_t i) {
        abi::CommHandle comm = core_->comms.members()[i]->handle;
        return windows ? library_.commWindowRegister(comm, memory[i], bytes, &handles.windows[i],
                                                     abi::kWindowSymmetric)
                       : library_.commRegister(comm, memory[i], bytes, &handles.local[i]);
      });
    };
    try {
      if (asked) each(true);
      // Without peer memory the library reports success and makes no windows.
      const bool all = asked && std::find(handles.windows.begin(), handles.windows.end(),
                                          nullptr) == handles.windows.end();
      if (!all && library_.commRegister != nullptr) each(false);
      made = std::make_unique<RankRegistration>(
          library_, core_, all ? RegistrationKind::symmetric : RegistrationKind::local,
          std::move(handles));
    } catch (...) {
      handles.release(library_, core_->comms);
      // A thread of the library may still write its results.
      core_->abandoned.push_back(std::make_shared<Handles>(std::move(handles)));
      throw;
    }
  });
  return made;
}

}  // namespace gradlink::nccl

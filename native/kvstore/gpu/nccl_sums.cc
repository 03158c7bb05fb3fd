#include "kvstore/gpu/nccl_sums.h"

#include <chrono>
#include <utility>

#include "core/error.h"
#include "kvstore/base/misuse.h"

namespace gradlink {

bool usesNccl(GpuMerge merge, bool peer, std::size_t devices, std::size_t places) {
  if (merge == GpuMerge::nccl && !peer) {
    throw storeUnsupported(
        "NCCL decides itself whether GPUs reach one another: set NCCL_P2P_DISABLE=1, or use the "
        "store type 'device', which merges by copies then");
  }
  if ((merge != GpuMerge::nccl && merge != GpuMerge::automatic) || !peer) return false;
  const bool distinct = places == devices;
  if (merge == GpuMerge::nccl) {
    if (!distinct) {
      throw storeUnsupported(
          "NCCL wants each GPU once: name each once, or have them merged by copies (merge: "
          "'peers'; "
          "the store type 'device' in place of 'nccl')");
    }
    nccl::libraryInfo();
    return true;
  }
  if (!distinct || places == 1) return false;
  try {
    nccl::libraryInfo();
    return true;
  } catch (const Error& error) {
    if (error.code != ErrorCode::backendUnavailable) throw;
    return false;
  }
}

GpuNccl::GpuNccl(bool uses, GpuPlaces& places, std::vector<int> gpus, double timeoutMs,
                 std::size_t fuseBelow)
    : uses_(uses),
      places_(places),
      gpus_(std::move(gpus)),
      timeoutMs_(timeoutMs),
      fuseBelow_(fuseBelow),
      packs_(places) {}

void GpuNccl::open() {
  if (!uses_) return;
  openCommunicator();
  // What is registered otherwise than as windows the library does not use within one process.
  const nccl::LibraryInfo& library = nccl::libraryInfo();
  if (library.windows && !library.registersNothing && places_.size() > 1) packs_.want();
}

void GpuNccl::openCommunicator() {
  communicator_ = nccl::openLocal(gpus_, {timeoutMs_, &cancelled_});
}

void GpuNccl::registerPacks() {
  const std::size_t bytes = packs_.lacking();
  if (bytes == 0) return;
  communicator_->check("kvstore");
  // A registration that the library refuses ends the communicator, and what is under way with it;
  // and what was registered so far must not be in use.
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].stream.done()) return;
  }
  try {
    packs_.replace(communicator_->allocRegistered(bytes), bytes);
  } catch (const Error& error) {
    if (cancelled_) throw;
    packs_.giveUp();
    if (!error.usable) openCommunicator();
  }
}

std::unique_ptr<GpuCollectives> GpuNccl::collectives() {
  if (!communicator_) return nullptr;
  return std::make_unique<GpuCollectives>(places_, packs_, *communicator_, fuseBelow_);
}

void GpuNccl::look() {
  if (!communicator_) return;
  const auto now = Deadline::Clock::now();
  if (now - looked_ < std::chrono::milliseconds(1)) return;
  looked_ = now;
  communicator_->check("kvstore");
}

void GpuNccl::abort(const std::string& reason) {
  if (communicator_) communicator_->abort(reason);
}

}  // namespace gradlink

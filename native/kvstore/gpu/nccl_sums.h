// NCCL's part in what a store of one process's GPUs sums: a communicator of its places, which is
// watched while rounds are under way, and the memory that small arrays are packed into.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "kvstore/gpu/collectives.h"
#include "kvstore/gpu/gpu_store.h"
#include "kvstore/gpu/packs.h"
#include "kvstore/gpu/places.h"
#include "nccl/nccl.h"

namespace gradlink {

/// Whether NCCL sums arrays of so many devices on so many GPUs, or copies between them do. `peer`:
/// GPUs may reach one another. Throws where it must be NCCL and cannot.
bool usesNccl(GpuMerge merge, bool peer, std::size_t devices, std::size_t places);

/// Of the engine's thread, except where it says otherwise.
class GpuNccl {
 public:
  /// Where it is not used, nothing is opened, and there are no collectives.
  GpuNccl(bool uses, GpuPlaces& places, std::vector<int> gpus, double timeoutMs,
          std::size_t fuseBelow);

  bool uses() const { return uses_; }
  void open();
  /// From any thread: open() is to give up soon.
  void cancel() noexcept { cancelled_ = true; }

  /// What earlier rounds packed is free again for each stream.
  void reset() { packs_.reset(); }
  /// Before a round: makes what rounds pack known to NCCL, where that is of use.
  void registerPacks();
  /// Of one round; null where NCCL takes no part.
  std::unique_ptr<GpuCollectives> collectives();

  /// Throws what ended the communicator, if anything has.
  void look();
  /// Lets go of what the streams wait for.
  void abort(const std::string& reason);

 private:
  void openCommunicator();

  const bool uses_;
  GpuPlaces& places_;
  const std::vector<int> gpus_;
  const double timeoutMs_;
  const std::size_t fuseBelow_;
  Deadline::Clock::time_point looked_ = Deadline::Clock::now();
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<nccl::NcclCommunicator> communicator_;
  GpuPacks packs_;
};

}  // namespace gradlink

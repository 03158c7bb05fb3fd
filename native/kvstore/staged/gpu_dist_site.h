// Values on servers, or in the host's memory of every worker: what GPUs push goes through
// page-locked memory of the host to the store that talks to the others, what it pulls comes back
// the same way. While one key's arrays are on their way to the host, others are with the servers,
// and others on their way back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/stream.h"
#include "kvstore/gpu/nccl_sums.h"
#include "kvstore/gpu/places.h"
#include "kvstore/gpu/site.h"
#include "kvstore/staged/gpu_dist_store.h"
#include "kvstore/worker/dist_store.h"

namespace gradlink {

class GpuDistSite final : public GpuSite {
 public:
  /// `wake`: tells the engine that the inner store has done something. Throws where a GPU is
  /// missing.
  GpuDistSite(Store& inner, const GpuDistOptions& options, std::function<void()> wake);
  ~GpuDistSite() override;

  const GpuPlaces& places() const { return places_; }
  /// Memory that the key's arrays pass through. On the caller's thread, while others run.
  void makeRoom(GpuKey&);

  void open() override;
  bool blocksKey(const GpuUnit&) const override { return true; }
  /// A push is done when its arrays have been read; a pull waits for the other workers.
  bool joinsPulls() const override { return false; }
  std::size_t roundBytes() const override { return std::size_t{64} << 20; }
  void begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) override;
  void cancel() noexcept override { nccl_.cancel(); }
  bool quiesce() noexcept override;

 private:
  class Visit;
  /// Whether the unit's arrays are summed before they leave the GPUs.
  bool sums(const GpuUnit& unit) const {
    return !options_.onHost && unit.in.size() > 1 && !unit.ofRows();
  }

  Store& inner_;
  const GpuDistOptions options_;
  const std::function<void()> wake_;
  GpuPlaces places_;
  GpuNccl nccl_;  // goes before the streams it works on
  /// One a place, for what comes back: so that both copy engines are busy.
  std::vector<std::unique_ptr<cuda::Stream>> up_;
};

}  // namespace gradlink

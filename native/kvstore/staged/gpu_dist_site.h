// Values on servers, or in the host memory of every worker: GPUs' arrays pass through page-locked
// memory to and from the inner store. Copies and transfers of different keys overlap.
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
  /// `wake`: called when the inner store has done something. Throws if a GPU is missing.
  GpuDistSite(Store& inner, const GpuDistOptions& options, std::function<void()> wake);
  ~GpuDistSite() override;

  const GpuPlaces& places() const { return places_; }
  /// Allocates a key's staging memory. On the caller's thread, while others run.
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
  class HostTransfer;
  /// Whether the arrays are summed before they leave the GPUs.
  bool sums(const GpuUnit& unit) const {
    return !options_.onHost && unit.in.size() > 1 && !unit.ofRows();
  }

  Store& inner_;
  const GpuDistOptions options_;
  const std::function<void()> wake_;
  GpuPlaces places_;
  GpuNccl nccl_;  // destroyed before its streams
  /// One for each GPU for copies back, so both copy engines are busy.
  std::vector<std::unique_ptr<cuda::Stream>> up_;
};

}  // namespace gradlink

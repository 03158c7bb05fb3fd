// Values in page-locked memory of the host: what GPUs push is copied there, summed and stepped by
// the CPU, and copied back. While one key, or a piece of a large one, is summed, the next ones
// arrive and the ones before leave. A GPU that fails on the way leaves a large key partly new.
#pragma once

#include <memory>
#include <vector>

#include "kvstore/gpu/gpu_store.h"
#include "kvstore/gpu/marks.h"
#include "kvstore/gpu/site.h"

namespace gradlink {

/// Elements of a key.
struct ElementRange {
  std::size_t first;
  std::size_t count;
};

class GpuHostSite final : public GpuValueSite {
 public:
  GpuHostSite(const GpuStoreOptions& options, std::function<void()> wake);
  ~GpuHostSite() override;

  /// kHostPlace where no GPU of the store has that ordinal.
  std::size_t placeOf(int ordinal) const;

  void makeRoom(GpuKey&) override;
  bool blocksKey(const GpuUnit&) const override { return true; }
  std::size_t roundBytes() const override { return std::size_t{128} << 20; }
  void begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) override;
  bool quiesce() noexcept override;

 private:
  class Visit;
  /// One GPU, with a stream for each direction, so that both copy engines are busy.
  struct Place {
    explicit Place(cuda::Device& device) : device(device), down(device), up(device) {}
    cuda::Device& device;
    cuda::Stream down;
    cuda::Stream up;
  };

  const double timeoutMs_;
  const std::function<void()> wake_;
  std::vector<std::unique_ptr<Place>> places_;
  GpuEvents events_;
};

}  // namespace gradlink

// Values on the GPUs: summed by NCCL, or by a kernel that reads the other GPUs' memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kvstore/base/compression.h"
#include "kvstore/gpu/gpu_store.h"
#include "kvstore/gpu/nccl_sums.h"
#include "kvstore/gpu/places.h"
#include "kvstore/gpu/site.h"

namespace gradlink {

class GpuRound;

class GpuDeviceSite final : public GpuValueSite {
 public:
  /// `wake`: tells the engine that an updater is done. Throws where a GPU is missing, and where
  /// NCCL is wanted and cannot be had.
  GpuDeviceSite(const GpuStoreOptions& options, std::function<void()> wake);
  ~GpuDeviceSite() override;

  GpuPlaces& places() { return places_; }
  bool sumsByNccl() const { return nccl_.uses(); }
  /// Before the first key.
  void setCompression(const GradientCompression* compression) { compression_ = compression; }

  /// Loads what the rounds to come use, on all GPUs at once. By the engine's thread; what fails is
  /// the error of the round that needs it.
  void loadSteps(const Optimizer&) noexcept;
  void loadCompression() noexcept;

  void open() override;
  void makeRoom(GpuKey&) override;
  /// The same for its parts.
  void makeRoomInParts(GpuKey&);
  bool blocksKey(const GpuUnit& unit) const override;
  /// Some 130 us of each GPU's memory.
  std::size_t roundBytes() const override { return places_.size() * (std::size_t{512} << 20); }
  /// Some 20 us, twice what a round costs the engine, but for a call of NCCL. From 32 to
  /// 128 MiB it made no difference on an H100.
  std::size_t firstRoundBytes() const override {
    return nccl_.uses() ? roundBytes() : places_.size() * (std::size_t{64} << 20);
  }
  void begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) override;
  std::unique_ptr<OptimizerState> stateOf(const GpuKey&) override;
  void restoreState(GpuKey&, KeyState&) override;
  void cancel() noexcept override { nccl_.cancel(); }
  bool quiesce() noexcept override { return places_.quiesce(); }

 private:
  class Round;
  class HostUpdate;
  void launch(GpuRound& round);
  void prepareRound();

  const GpuStoreOptions options_;
  const std::function<void()> wake_;
  GpuPlaces places_;
  const GradientCompression* compression_ = nullptr;
  /// Whose memory of the last rounds other places may still be reading.
  GpuMarks crossing_;
  GpuNccl nccl_;  // goes before the streams it works on
};

}  // namespace gradlink

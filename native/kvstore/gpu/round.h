// One round of a store whose values live on GPUs: what its units come down to, gathered first, then
// queued with few launches.
// Arrays of the host come and go through page-locked memory of their key, on its owner's stream.
//
// Each value is worked on by its owner's stream alone, so that rounds need not wait for one
// another. On its way: compression where the arrays are; copies of what the owner does not reach;
// NCCL's sums; sums and optimizers on the homes; NCCL's broadcasts; unpacking.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "cuda/compress.h"
#include "kvstore/base/compression.h"
#include "kvstore/gpu/collectives.h"
#include "kvstore/gpu/key.h"
#include "kvstore/gpu/places.h"
#include "kvstore/gpu/step.h"

namespace gradlink {

class GpuRound {
 public:
  /// `collectives`: null where NCCL takes no part.
  GpuRound(GpuPlaces& places, const GradientCompression* compression, GpuCollectives* collectives);

  void addPush(GpuUnit& unit);
  void addPull(GpuUnit& unit);
  void addRows(GpuUnit& unit);
  /// A push of rows whose optimizer is lazy: they travel and are stepped alone.
  void addRowUpdate(GpuUnit& unit);
  /// What the unit pushes, summed, in memory of the round on the owner, nothing else.
  void* addSum(GpuUnit& unit);
  /// The same by NCCL, where the unit has an array on every place, else null. After launch() it
  /// says where the sum will be.
  const GpuCollectives::KeyCollective* shareSum(GpuUnit& unit);

  /// Queues all of it.
  void launch();
  /// Whether streams read what other places keep for the round: the next one may not use the
  /// memory of rounds before.
  bool crossesPlaces() const { return compresses_; }

 private:
  struct Zero {
    void* to;
    std::size_t bytes;
  };
  /// What one place does, in this order.
  struct Work {
    std::vector<GpuCopy> uploads;
    std::vector<cuda::CompressTask> compress;
    std::vector<GpuCopy> arriving;
    std::vector<cuda::DecompressTask> decompress;
    GpuSums packing;
    // NCCL
    std::vector<Zero> zeros;
    GpuSums sums;
    GpuSteps steps;
    // NCCL
    GpuSums unpacking;
    std::vector<GpuCopy> leaving;
  };
  using KeyCollective = GpuCollectives::KeyCollective;
  /// A unit that NCCL takes part in.
  struct Shared {
    GpuUnit* unit;
    KeyCollective* sum;     // null: a pull
    KeyCollective* spread;  // broadcast of the value, or null
    bool keeps;             // the sum fills the key's copies
    /// Of its outputs, those that the collectives do not fill, then those they do, by place.
    std::vector<GpuArray> others;
    std::vector<void*> filled;
  };

  bool fromHost(const GpuUnit& unit) const;
  /// What the owner sums: the arrays themselves, where it reaches them, or copies.
  cuda::Sources sourcesOf(GpuUnit& unit);
  GpuArray uploaded(GpuUnit& unit, std::size_t index);
  cuda::Sources decoded(GpuUnit& unit);
  float* residualOf(GpuKey& key, std::size_t index, std::size_t place);
  /// The outputs the owner writes itself; copies to the others follow the round's kernels.
  cuda::Targets targetsOf(GpuUnit& unit, const std::vector<GpuArray>& outputs);
  void leave(GpuUnit& unit, GpuArray out, void* from);
  void addUpdate(GpuUnit& unit, cuda::Sources grads, cuda::Targets targets);
  void addSums(std::size_t place, DType, cuda::SumTask task);

  bool share(GpuUnit& unit);
  bool makeCopies(GpuKey& key);
  void pullCopies(GpuUnit& unit);
  std::optional<std::vector<const void*>> inputByPlace(const GpuUnit& unit) const;
  bool splitOutputs(const GpuUnit& unit, Shared& shared) const;
  void finishShared(Shared& shared);
  void unpack(const Shared& shared, const KeyCollective& part, GpuSums Work::*when);

  void launchSums(std::size_t place, const GpuSums& sums);
  void compute(std::size_t place);
  void compressAll();

  /// Of the tasks' lists: before them.
  std::pmr::monotonic_buffer_resource memory_{std::size_t{16} << 10};
  GpuPlaces& places_;
  const GradientCompression* compression_;
  GpuCollectives* collectives_;
  std::vector<Work> work_;
  std::deque<Shared> shared_;
  bool compresses_ = false;
};

}  // namespace gradlink

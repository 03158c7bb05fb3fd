// One key of a store of CPU devices: its value, what goes with it, and how queued operations become
// passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/aligned_buffer.h"
#include "kvstore/local/scheduler.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/store.h"

namespace gradlink {

/// What an optimizer keeps for a key. The arrays are made by the first update, when the value has
/// settled; the count of updates goes ahead with every push that is admitted.
struct KeyState {
  std::shared_ptr<Optimizer> optimizer;
  std::unique_ptr<OptimizerState> state;
  bool made = false;
};

/// How pushes change stored values at present. Guarded by the scheduler's lock.
struct UpdateRule {
  std::shared_ptr<Optimizer> optimizer;
  std::shared_ptr<ExternalUpdater> external;
};

/// An operation with what was fixed when it was admitted.
struct KeyItem final : Item {
  Operation operation;
  /// Results are larger than the caches and may bypass them.
  bool streaming = false;
  std::shared_ptr<KeyState> state;  // push with an optimizer
  UpdateNumbers numbers{};
  std::shared_ptr<ExternalUpdater> external;
  std::exception_ptr error;
};

class KeyLane final : public Lane {
 public:
  KeyLane(Scheduler& scheduler, const UpdateRule& rule, const GradientCompression* compression,
          KeyId id, std::string name, DType dtype, std::size_t count, std::size_t rowLength,
          std::size_t first);

  void admit(Item&) override;
  std::unique_ptr<Work> plan() override;

  std::size_t bytes() const { return count * sizeOf(dtype); }
  /// Whether pushes of this key go through gradient compression, which is defined for float32.
  bool compresses() const { return compression != nullptr && dtype == DType::float32; }

  Scheduler& scheduler;
  const UpdateRule& rule;
  /// Changes while nothing is pending.
  const GradientCompression* compression;
  const KeyId id;
  const std::string name;
  const DType dtype;
  const std::size_t count;
  const std::size_t rowLength;
  /// Of a key that is a part of a larger one, where it begins there.
  const std::size_t first;

  // ---- used by the one work in progress
  void* value() { return static_cast<std::byte*>(memory_.data()) + kValueOffset; }
  /// The sum, where it may not go straight into the value. Made when first needed.
  AlignedBuffer merged;
  /// Compression's error feedback, one array for each device. Made when first needed.
  std::vector<AlignedBuffer> residuals;

  // ---- guarded by the scheduler's lock
  std::shared_ptr<KeyState> state;

 private:
  // malloc, and so JavaScript, puts large arrays 16 bytes behind the start of a page. A value that
  // lies alike reaches the ends of cache lines together with them, so that one pass can write all
  // of them past the caches.
  static constexpr std::size_t kValueOffset = 16;

  AlignedBuffer memory_;
};

}  // namespace gradlink

// One key of a store of CPU devices: its value, and how queued operations become passes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/memory/aligned_buffer.h"
#include "kvstore/key.h"
#include "kvstore/local/scheduler.h"

namespace gradlink {

class KeyLane final : public Lane {
 public:
  KeyLane(Scheduler& scheduler, const UpdateRule& rule, const GradientCompression* compression,
          Key key);

  void admit(KeyItem& item) override { rule.admit(item.operation.kind, *this, item); }
  std::unique_ptr<Work> plan() override;

  /// Whether this key's pushes are compressed: compression is defined for float32.
  bool compresses() const { return compression != nullptr && dtype == DType::float32; }

  Scheduler& scheduler;
  /// Guarded by the scheduler's lock.
  const UpdateRule& rule;
  /// Changes while nothing is pending.
  const GradientCompression* compression;

  // ---- used by the one work in progress
  void* value() { return static_cast<std::byte*>(memory_.data()) + kValueOffset; }
  /// The sum, if it cannot go straight into the value. Allocated on demand.
  AlignedBuffer merged;
  /// Compression's residuals, one for each device. Allocated on demand.
  std::vector<AlignedBuffer> residuals;

 private:
  // malloc, and so JavaScript, puts large arrays 16 bytes behind the start of a page. With the same
  // alignment the value reaches cache lines together with them, so one pass can stream to all.
  static constexpr std::size_t kValueOffset = 16;

  AlignedBuffer memory_;
};

}  // namespace gradlink

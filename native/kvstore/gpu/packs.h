// Where arrays are packed that all places sum together: the same bytes on every place, known to
// NCCL where it takes that, so that its kernels reach into the buffers of all places (symmetric
// memory).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kvstore/gpu/places.h"
#include "nccl/nccl.h"

namespace gradlink {

class GpuPacks {
 public:
  using Memory = std::vector<std::unique_ptr<nccl::RegisteredMemory>>;

  explicit GpuPacks(GpuPlaces& places) : places_(places) {}

  /// One buffer a place, 256-byte aligned: of what is registered while there is room, else of the
  /// places' own memory.
  std::vector<std::byte*> take(std::size_t bytes);
  /// All of it is free again.
  void reset() { used_ = 0; }

  /// From now on lacking() says what would be of use.
  void want() { wanting_ = true; }
  /// Bytes to register, between rounds, so that the largest round so far finds room; 0 for none.
  std::size_t lacking() const;
  /// In the place of what there was. Nothing uses that any more.
  void replace(Memory memory, std::size_t bytes);
  /// Goes on without.
  void giveUp();

 private:
  GpuPlaces& places_;
  bool wanting_ = false;
  Memory memory_;
  std::size_t bytes_ = 0;
  /// Of the round, also what did not fit.
  std::size_t used_ = 0;
  /// The most that a round used.
  std::size_t most_ = 0;
};

}  // namespace gradlink

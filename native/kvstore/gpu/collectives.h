// The part of a round that NCCL does: two groups of collectives, one before and one after the
// optimizers. Small arrays of one kind are packed into one buffer and travel as one collective.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "kvstore/gpu/key.h"
#include "kvstore/gpu/packs.h"
#include "kvstore/gpu/places.h"
#include "nccl/nccl.h"

namespace gradlink {

/// By element type, for one launch each.
using GpuSums = std::map<DType, std::vector<cuda::SumTask>>;

class GpuCollectives {
 public:
  enum class Stage : std::uint8_t { before, after };

  /// One key's part: the memory that it has for itself, and, once resolve() has run, the memory
  /// that the collective works on.
  struct KeyCollective {
    Stage stage;
    Kind kind;  // allReduce, reduce or broadcast
    DType dtype;
    std::size_t count;
    std::size_t root;
    /// By place; null where the collective needs none there.
    std::vector<const void*> in;
    std::vector<void*> out;
    bool packed = false;
    /// Of a part of a key that is cut over the places, that key and which part it is.
    const GpuKey* whole = nullptr;
    std::size_t index = 0;
    bool joined = false;

    /// Where a place finds the result.
    void* result(std::size_t place) const { return out[place]; }
  };

  GpuCollectives(GpuPlaces& places, GpuPacks& packs, nccl::NcclCommunicator& communicator,
                 std::size_t fuseBelow);

  /// The part stays where it is until launch().
  KeyCollective& add(KeyCollective part);
  /// Decides what is packed, and gives those parts other memory. `packing[place]` gets the copies
  /// into it that must come before the group (of the first stage).
  void resolve(std::span<GpuSums> packing);
  bool has(Stage) const;
  void launch(Stage);

 private:
  struct Memory {
    std::vector<const void*> in;
    std::vector<void*> out;
  };
  void joinParts();
  bool fitTogether(const std::vector<KeyCollective*>& parts) const;
  void join(const std::vector<KeyCollective*>& parts);
  void pack(std::span<KeyCollective*> parts, std::span<GpuSums> packing);
  std::vector<std::byte*> buffersFor(Kind kind, std::size_t bytes);
  void queue(const KeyCollective& part, Kind kind, std::size_t count, Memory memory);

  GpuPlaces& places_;
  GpuPacks& packs_;
  nccl::NcclCommunicator& communicator_;
  const std::size_t fuseBelow_;
  std::deque<KeyCollective> parts_;
  std::deque<Memory> memory_;
  std::vector<nccl::Launch> launches_[2];
};

}  // namespace gradlink

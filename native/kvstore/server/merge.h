// The arithmetic of a server's pipeline: sums of pushed pieces, and optimizer steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/dtype.h"
#include "core/kernels/store_style.h"
#include "core/memory/aligned_buffer.h"
#include "kvstore/base/compression.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/protocol/protocol.h"

namespace gradlink::dist {

struct PushedPiece {
  const void* data;
  Encoding encoding;
  std::size_t bytes;
};

class Merger {
 public:
  explicit Merger(std::uint16_t lane) : lane_(lane) {}

  /// Sums the pieces into `to`, from the left.
  void assign(void* to, std::span<const PushedPiece> pieces, std::size_t count, DType dtype,
              const GradientCompression* compression);
  /// Runs a phase of an update of elements [first, first + count) of `weight`, with the pieces' sum
  /// as gradient. `first` is a multiple of kUpdateBlock.
  void update(UpdateRun& run, int phase, void* weight, std::span<const PushedPiece> pieces,
              std::size_t first, std::size_t count, DType dtype,
              const GradientCompression* compression);

  /// A buffer for a kept piece; returned buffers are reused.
  AlignedBuffer room(std::size_t bytes);
  void giveRoom(AlignedBuffer room);

  std::uint16_t lane() const { return lane_; }
  // Seconds. Read by the pipeline, or while it is idle.
  double mergeSeconds() const { return merge_; }
  double updateSeconds() const { return update_; }

 private:
  /// The pieces, with those of rows expanded.
  std::span<const PushedPiece> whole(std::span<const PushedPiece> pieces, std::size_t count, DType);
  /// For lazy optimizers: updates only these rows.
  void updateRows(UpdateRun& run, std::span<const PushedPiece> pieces, std::size_t first,
                  std::size_t count, DType);
  void sum(void* to, std::span<const PushedPiece> pieces, std::size_t count, DType dtype,
           const GradientCompression* compression, bool streaming);

  void updateAside(UpdateRun& run, int phase, void* weight, std::size_t first, std::size_t count,
                   DType dtype);

  const std::uint16_t lane_;
  StoreStyle assignStyle_;
  StoreStyle updateStyle_;
  std::vector<const void*> sources_;
  std::vector<AlignedBuffer> rooms_;
  std::vector<PushedPiece> whole_;
  std::vector<AlignedBuffer> spare_;
  AlignedBuffer decoded_;
  AlignedBuffer summed_;
  AlignedBuffer aside_;
  double merge_ = 0;
  double update_ = 0;
};

}  // namespace gradlink::dist

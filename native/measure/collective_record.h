// One record a collective: how it may run in place, and what must come out. A new collective is a
// new record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/communicator.h"
#include "nccl/message.h"

namespace gradlink::measure {

/// Where one block of `count` elements of a rank's output comes from.
struct BlockOrigin {
  /// How many ranks' input blocks it is the reduction of, from rank 0 on; nothing: it is the input
  /// of `rank`.
  std::optional<int> reducedRanks;
  int rank;
  /// Which block of the input.
  std::size_t block;
};

/// A part of a rank's output.
struct Segment {
  /// Where it begins in the output, and where it comes from in the input.
  std::size_t begin;
  std::size_t first;
  std::size_t count;
  BlockOrigin origin;
};

/// How a call is made that Communicator::collective is not.
struct MessageCall {
  Blocks in;
  Blocks out;
  MessageSteps (*messages)(std::size_t count, DType, int n);
  /// In the host's memory.
  void (*run)(Communicator&, const Shape&, const Buffers&, const CallOptions&);
  /// Parts of different lengths; null where all have `count`.
  Segment (*segment)(int rank, std::size_t block, std::size_t count, DType, int n) = nullptr;
};

/// How input and output share memory in place.
enum class InPlace : std::uint8_t {
  none,         // cannot
  same,         // in == out
  inInsideOut,  // in == out + rank * count
  outInsideIn,  // out == in + rank * count
};

struct CollectiveRecord {
  const char* name;
  /// What Communicator::collective makes of it; nothing for what is made of messages.
  std::optional<Kind> kind;
  InPlace inPlace;
  /// Whether this rank's output is defined after the call, and by what.
  bool (*receives)(int rank, int root);
  BlockOrigin (*origin)(int rank, std::size_t block, int root, int n);
  /// Where it has no kind.
  MessageCall made = {};

  bool reduces() const { return kind && hasOp(*kind); }
  /// What must come out.
  Segment segment(int rank, std::size_t block, const Shape& shape, int root, int n) const;
  /// The shape of one call, whose fields that mean nothing for the kind are at their defaults; of
  /// messages the barrier's, with dtype and count.
  Shape shape(std::size_t count, DType dtype, ReduceOp op, int root) const;
  /// Blocks of `count` elements in the arrays of every rank of n, needed there or not.
  std::size_t inputBlocks(int n) const { return largest(kind ? traitsOf(*kind).in : made.in, n); }
  std::size_t outputBlocks(int n) const {
    return largest(kind ? traitsOf(*kind).out : made.out, n);
  }

 private:
  static std::size_t largest(Blocks blocks, int n) { return blocksOf(blocks, n, true); }
};

const CollectiveRecord& recordOf(Kind);
/// A ring: each rank sends to the next one and receives from the one before. For communicators that
/// hold one rank, and GPUs.
const CollectiveRecord& ringRecord();
/// By its name, "allReduce" or "sendReceive"; throws invalidArgument for any other.
const CollectiveRecord& recordNamed(std::string_view name);

/// Makes the call on a communicator in host memory.
void runRecord(const CollectiveRecord&, Communicator&, const Shape&, const Buffers&,
               const CallOptions&);

}  // namespace gradlink::measure

// One record for each collective: its in-place form and expected result. New ones go here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/communicator.h"
#include "nccl/message.h"

namespace gradlink::measure {

/// The origin of one block of `count` elements of a rank's output.
struct BlockOrigin {
  /// The number of ranks, from 0 on, whose input blocks it reduces; nothing: it is `rank`'s input.
  std::optional<int> reducedRanks;
  int rank;
  std::size_t block;
};

struct Segment {
  /// Its offsets in the output and in the input.
  std::size_t begin;
  std::size_t first;
  std::size_t count;
  BlockOrigin origin;
};

/// A call that is not in Communicator::collective.
struct MessageCall {
  Blocks in;
  Blocks out;
  MessageSteps (*messages)(std::size_t count, DType, int n);
  /// In the host's memory.
  void (*run)(Communicator&, const Shape&, const Buffers&, const CallOptions&);
  /// Parts of different lengths; null if all have `count`.
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
  /// Its kind in Communicator::collective; nothing if it is made of messages.
  std::optional<Kind> kind;
  InPlace inPlace;
  /// Whether this rank's output is defined after the call, and its origin.
  bool (*receives)(int rank, int root);
  BlockOrigin (*origin)(int rank, std::size_t block, int root, int n);
  /// If it has no kind.
  MessageCall made = {};

  bool reduces() const { return kind && hasOp(*kind); }
  Segment segment(int rank, std::size_t block, const Shape& shape, int root, int n) const;
  /// The shape of one call; for messages the barrier's, with dtype and count.
  Shape shape(std::size_t count, DType dtype, ReduceOp op, int root) const;
  /// Blocks of `count` elements in the arrays of every rank of n, including unused ones.
  std::size_t inputBlocks(int n) const { return largest(kind ? traitsOf(*kind).in : made.in, n); }
  std::size_t outputBlocks(int n) const {
    return largest(kind ? traitsOf(*kind).out : made.out, n);
  }

 private:
  static std::size_t largest(Blocks blocks, int n) { return blocksOf(blocks, n, true); }
};

const CollectiveRecord& recordOf(Kind);
/// A ring: each rank sends to the next. For communicators that hold one rank, and GPUs.
const CollectiveRecord& ringRecord();
/// By its name, "allReduce" or "sendReceive"; throws invalidArgument for any other.
const CollectiveRecord& recordNamed(std::string_view name);

/// Makes the call on a communicator in host memory.
void runRecord(const CollectiveRecord&, Communicator&, const Shape&, const Buffers&,
               const CallOptions&);

}  // namespace gradlink::measure

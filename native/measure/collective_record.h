// One record a collective: what it moves, how it is called, what must come out. A new collective is
// a new record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/communicator.h"

namespace gradlink::measure {

enum class Collective : std::uint8_t {
  allReduce = 0,
  reduce = 1,
  broadcast = 2,
  allGather = 3,
  reduceScatter = 4,
  allToAll = 5,
  gather = 6,
  scatter = 7,
  barrier = 8,
  sendReceive = 9,  // a ring: to the next rank, from the one before; communicators of one rank only
};
inline constexpr int kCollectiveCount = 10;

/// One call's arguments besides memory; `count` as core/communicator.h counts it for this
/// collective.
struct CollectiveArguments {
  std::size_t count;
  DType dtype;
  ReduceOp op;
  int root;
  CallOptions options;
};

/// Where one block of `count` elements of a rank's output comes from.
struct BlockOrigin {
  /// The block is the reduction of all ranks' input blocks; otherwise it is the input of `rank`.
  bool reduced;
  int rank;
  /// Which block of the input.
  std::size_t block;
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
  InPlace inPlace;
  bool reduces;
  /// Blocks of `count` elements that a rank's input and output hold, of n ranks.
  std::size_t (*inputBlocks)(int n);
  std::size_t (*outputBlocks)(int n);
  void (*run)(Communicator&, const Buffers&, const CollectiveArguments&);
  /// Whether this rank's output is defined after the call, and by what.
  bool (*receives)(int rank, int root);
  BlockOrigin (*origin)(int rank, std::size_t block, int root, int n);
};

const CollectiveRecord& recordOf(Collective);

}  // namespace gradlink::measure

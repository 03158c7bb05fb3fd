// Which server holds which elements of a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/dtype.h"

namespace gradlink::dist {

/// Elements [first, first + count) of a key, on one server.
struct Shard {
  /// Unique in the store: 0, 1, 2 ... in the order of definition.
  std::uint32_t number;
  int server;
  std::size_t first;
  std::size_t count;
};

/// All workers define the same keys in the same order, so they agree without communication.
class ShardPlacer {
 public:
  ShardPlacer(int servers, std::size_t bigArrayBound);

  /// Keys of at least the bound are cut evenly over all servers in order, between rows if that
  /// stays even. Smaller ones go to the server with the fewest bytes. An empty key has no shards.
  std::vector<Shard> place(std::size_t count, DType dtype, std::size_t rowLength = 1);

  /// Whether place() would cut within a row.
  bool cutsRows(std::size_t count, std::size_t rowLength) const;

 private:
  /// Elements between possible cuts.
  std::size_t stepOf(std::size_t count, std::size_t rowLength) const;

  std::size_t bound_;
  std::uint32_t next_ = 0;
  std::vector<std::uint64_t> bytes_;  // by server
};

}  // namespace gradlink::dist

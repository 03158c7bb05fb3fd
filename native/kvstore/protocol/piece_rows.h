// Pieces with only some elements: those of rows that a worker pushes or pulls.
//
// A push's payload: the number of runs (8 bytes), the runs, the elements. A value's payload has
// only the elements: the receiver knows the runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/kernels/dtype.h"
#include "kvstore/protocol/protocol.h"

namespace gradlink::dist {

constexpr bool isOfRows(Encoding encoding) {
  return encoding == Encoding::rows || encoding == Encoding::widerRows;
}
/// The wire type of the elements in a push of rows.
constexpr DType rowTypeOf(Encoding encoding, DType dtype) {
  return encoding == Encoding::widerRows ? DType::float32 : dtype;
}

struct ElementRun {
  std::uint32_t first;
  std::uint32_t count;
};

/// Consecutive elements of a shard, as requested by pullRows.
struct ShardRun {
  std::uint64_t first;
  std::uint64_t count;
};

/// A run, and the index of its first element among the elements of the rows.
struct RowRun {
  ElementRun run;
  std::size_t at;
};

/// The runs of these rows (sorted, unique) in a piece that starts at `first` of the key.
std::vector<RowRun> runsOf(std::span<const std::int64_t> rows, std::size_t rowLength,
                           std::size_t first, std::size_t count);

std::size_t elementsOf(std::span<const RowRun> runs);

std::size_t pushBytes(std::span<const RowRun> runs, DType);
/// Writes a push's payload; `data`: the elements of the rows.
void writePush(std::span<const RowRun> runs, const void* data, DType, void* to);

/// A push's payload, read in place.
struct PushedRuns {
  std::span<const ElementRun> runs;
  const std::byte* data;
};
/// Nothing for an invalid payload of a piece of `count` elements.
std::optional<PushedRuns> readPush(const void* payload, std::size_t bytes, std::size_t count,
                                   DType);

void scatter(const PushedRuns& from, DType, void* piece);

}  // namespace gradlink::dist

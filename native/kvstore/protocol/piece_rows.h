// Pieces of which only some elements travel: those of rows that a worker pushes or wants.
//
// A push's payload is how many runs there are (8 bytes), the runs, then their elements one after
// another. A value's payload is the elements alone: who asked knows the runs.
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
/// What the elements of a push of rows of such a key travel as.
constexpr DType rowTypeOf(Encoding encoding, DType dtype) {
  return encoding == Encoding::widerRows ? DType::float32 : dtype;
}

/// Elements of a piece that follow one another.
struct ElementRun {
  std::uint32_t first;
  std::uint32_t count;
};

/// Elements of a shard that follow one another: what pullRows asks for.
struct ShardRun {
  std::uint64_t first;
  std::uint64_t count;
};

/// A run and where its first element lies in a list of the rows alone.
struct RowRun {
  ElementRun run;
  std::size_t at;
};

/// What a piece, of which `first` counts from the start of the key, has of these rows: sorted, each
/// once.
std::vector<RowRun> runsOf(std::span<const std::int64_t> rows, std::size_t rowLength,
                           std::size_t first, std::size_t count);

std::size_t elementsOf(std::span<const RowRun> runs);

/// Bytes of a push's payload.
std::size_t pushBytes(std::span<const RowRun> runs, DType);
/// Writes it; `data`: the rows alone.
void writePush(std::span<const RowRun> runs, const void* data, DType, void* to);

/// A push's payload, read where it lies.
struct PushedRuns {
  std::span<const ElementRun> runs;
  const std::byte* data;
};
/// Nothing where the payload is not that of a piece of `count` elements.
std::optional<PushedRuns> readPush(const void* payload, std::size_t bytes, std::size_t count,
                                   DType);

/// Copies the elements to where they are in the piece.
void scatter(const PushedRuns& from, DType, void* piece);

}  // namespace gradlink::dist

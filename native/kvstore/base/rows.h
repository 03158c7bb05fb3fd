// Row-sparse arrays: gradients of an embedding, of which a batch touches few rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/partial.h"
#include "core/memory/aligned_buffer.h"

namespace gradlink {

/// Some rows of an array, consecutive at `data`, with their numbers in any order, repeatable.
struct SomeRows {
  const void* data;
  std::span<const std::int64_t> rows;
};

/// SomeRows, sorted and unique.
struct SortedRows {
  std::vector<std::int64_t> rows;
  AlignedBuffer data;
  DType dtype{};
};

/// Sums the parts row by row in order: in the wider type if a row repeats, else in the parts' own.
SortedRows sumRows(std::span<const SomeRows> parts, std::size_t rowLength, const Partial&);

void sortEachOnce(std::vector<std::int64_t>& rows);

/// Expands the rows to an array of `count` elements at `to`; other rows become 0.
void spreadRows(const SortedRows& rows, std::size_t rowLength, void* to, std::size_t count);

/// Calls `body(first row, rows, index in the list)` for each run of rows in a sorted, unique list.
template <class Body>
void forEachRun(std::span<const std::int64_t> rows, Body body) {
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t run = 1;
    while (i + run < rows.size() && rows[i + run] == rows[i] + static_cast<std::int64_t>(run)) {
      ++run;
    }
    body(static_cast<std::size_t>(rows[i]), run, i);
    i += run;
  }
}

}  // namespace gradlink

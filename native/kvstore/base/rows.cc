#include "kvstore/base/rows.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink {

void sortEachOnce(std::vector<std::int64_t>& rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

SortedRows sumRows(std::span<const SomeRows> parts, std::size_t rowLength, DType dtype) {
  const std::size_t rowBytes = rowLength * sizeOf(dtype);
  struct Source {
    std::int64_t row;
    const std::byte* data;
  };
  std::vector<Source> sources;
  for (const SomeRows& part : parts) {
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      sources.push_back({part.rows[i], static_cast<const std::byte*>(part.data) + i * rowBytes});
    }
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const Source& a, const Source& b) { return a.row < b.row; });
  SortedRows sum;
  for (const Source& source : sources) {
    if (sum.rows.empty() || sum.rows.back() != source.row) sum.rows.push_back(source.row);
  }
  sum.data = AlignedBuffer(sum.rows.size() * rowBytes);
  auto* to = static_cast<std::byte*>(sum.data.data());
  std::vector<const void*> same;
  for (std::size_t i = 0; i < sources.size(); to += rowBytes) {
    same.clear();
    const std::int64_t row = sources[i].row;
    for (; i < sources.size() && sources[i].row == row; ++i) same.push_back(sources[i].data);
    if (same.size() == 1) {
      copyBytes(to, same[0], rowBytes);
    } else {
      void* const target[] = {to};
      reduceMany(target, same, rowLength, dtype, ReduceOp::sum);
    }
  }
  return sum;
}

void spreadRows(const SortedRows& rows, std::size_t rowBytes, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  std::memset(to, 0, bytes);
  const auto* const from = static_cast<const std::byte*>(rows.data.data());
  forEachRun(rows.rows, [&](std::size_t first, std::size_t count, std::size_t at) {
    copyBytes(static_cast<std::byte*>(to) + first * rowBytes, from + at * rowBytes,
              count * rowBytes);
  });
}

}  // namespace gradlink

#include "kvstore/base/rows.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/copy_bytes.h"

namespace gradlink {

void sortEachOnce(std::vector<std::int64_t>& rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

SortedRows sumRows(std::span<const SomeRows> parts, std::size_t rowLength, const Partial& partial) {
  const std::size_t rowBytes = rowLength * sizeOf(partial.result);
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
  const bool adds = sum.rows.size() < sources.size();
  const Partial into = adds ? partial : Partial::none(partial.result);
  sum.dtype = into.dtype;
  const std::size_t step = rowLength * sizeOf(sum.dtype);
  sum.data = AlignedBuffer(sum.rows.size() * step);
  auto* to = static_cast<std::byte*>(sum.data.data());
  std::vector<const void*> same;
  for (std::size_t i = 0; i < sources.size(); to += step) {
    same.clear();
    const std::int64_t row = sources[i].row;
    for (; i < sources.size() && sources[i].row == row; ++i) same.push_back(sources[i].data);
    if (same.size() == 1) {
      into.take(same[0], to, rowLength);
    } else {
      into.sum(same, 0, to, rowLength);
    }
  }
  return sum;
}

void spreadRows(const SortedRows& rows, std::size_t rowLength, void* to, std::size_t count) {
  if (count == 0) return;
  const std::size_t rowBytes = rowLength * sizeOf(rows.dtype);
  std::memset(to, 0, count * sizeOf(rows.dtype));
  const auto* const from = static_cast<const std::byte*>(rows.data.data());
  forEachRun(rows.rows, [&](std::size_t first, std::size_t count, std::size_t at) {
    copyBytes(static_cast<std::byte*>(to) + first * rowBytes, from + at * rowBytes,
              count * rowBytes);
  });
}

}  // namespace gradlink

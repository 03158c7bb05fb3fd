#include "kvstore/protocol/piece_rows.h"
#include "core/kernels/copy_bytes.h"

#include <algorithm>
#include <cstring>

namespace gradlink::dist {

std::vector<RowRun> runsOf(std::span<const std::int64_t> rows, std::size_t rowLength,
                           std::size_t first, std::size_t count) {
  std::vector<RowRun> runs;
  const std::size_t end = first + count;
  auto row =
      std::lower_bound(rows.begin(), rows.end(), static_cast<std::int64_t>(first / rowLength));
  for (; row != rows.end(); ++row) {
    const std::size_t rowFirst = static_cast<std::size_t>(*row) * rowLength;
    if (rowFirst >= end) break;
    const std::size_t from = std::max(rowFirst, first);
    const std::size_t to = std::min(rowFirst + rowLength, end);
    const auto start = static_cast<std::uint32_t>(from - first);
    const auto length = static_cast<std::uint32_t>(to - from);
    if (!runs.empty() && runs.back().run.first + runs.back().run.count == start) {
      runs.back().run.count += length;
    } else {
      const auto index = static_cast<std::size_t>(row - rows.begin());
      runs.push_back({{start, length}, index * rowLength + (from - rowFirst)});
    }
  }
  return runs;
}

std::size_t elementsOf(std::span<const RowRun> runs) {
  std::size_t elements = 0;
  for (const RowRun& one : runs) elements += one.run.count;
  return elements;
}

std::size_t pushBytes(std::span<const RowRun> runs, DType dtype) {
  return sizeof(std::uint64_t) + runs.size() * sizeof(ElementRun) +
         elementsOf(runs) * sizeOf(dtype);
}

void writePush(std::span<const RowRun> runs, const void* data, DType dtype, void* to) {
  auto* out = static_cast<std::byte*>(to);
  const std::uint64_t number = runs.size();
  std::memcpy(out, &number, sizeof number);
  out += sizeof number;
  for (const RowRun& one : runs) {
    std::memcpy(out, &one.run, sizeof one.run);
    out += sizeof one.run;
  }
  const std::size_t size = sizeOf(dtype);
  for (const RowRun& one : runs) {
    copyBytes(out, static_cast<const std::byte*>(data) + one.at * size, one.run.count * size);
    out += one.run.count * size;
  }
}

std::optional<PushedRuns> readPush(const void* payload, std::size_t bytes, std::size_t count,
                                   DType dtype) {
  std::uint64_t number = 0;
  if (payload == nullptr || bytes < sizeof number) return std::nullopt;
  std::memcpy(&number, payload, sizeof number);
  if (number > (bytes - sizeof number) / sizeof(ElementRun)) return std::nullopt;
  const auto* const begin = static_cast<const std::byte*>(payload) + sizeof number;
  const PushedRuns read{{reinterpret_cast<const ElementRun*>(begin), number},
                        begin + number * sizeof(ElementRun)};
  std::size_t end = 0;
  std::size_t elements = 0;
  for (const ElementRun& run : read.runs) {
    if (run.count == 0 || run.first < end || run.first > count || run.count > count - run.first) {
      return std::nullopt;
    }
    end = std::size_t{run.first} + run.count;
    elements += run.count;
  }
  const std::size_t expected =
      sizeof number + number * sizeof(ElementRun) + elements * sizeOf(dtype);
  return bytes == expected ? std::optional(read) : std::nullopt;
}

void scatter(const PushedRuns& from, DType dtype, void* piece) {
  const std::size_t size = sizeOf(dtype);
  const std::byte* data = from.data;
  for (const ElementRun& run : from.runs) {
    copyBytes(static_cast<std::byte*>(piece) + run.first * size, data, run.count * size);
    data += run.count * size;
  }
}

}  // namespace gradlink::dist

// Pushes of rows: all workers' rows are gathered, and each worker's own store sums them in worker
// order.
//
// A worker's block has for each key the row numbers, then the rows. All blocks have the length of
// the longest, so one all-gather suffices.

#include "core/kernels/copy_bytes.h"
#include "kvstore/allreduce/allreduce_engine.h"

namespace gradlink {

/// The number of unique rows is known after repeated ones are summed.
void AllreduceEngine::countRows(Unannounced& unannounced) const {
  Announcement& announced = unannounced.announced;
  Waiting& waiting = *unannounced.ofRows;
  if (!isHalf(announced.dtype)) {
    waiting.touched = sumRows(waiting.given(), announced.rowLength, Partial::none(announced.dtype));
  }
  std::size_t rows = 0;
  for (const SomeRows& one : waiting.given()) rows += one.rows.size();
  announced.rows = static_cast<std::uint32_t>(rows);
}

void AllreduceEngine::fillRows(const std::vector<Share>& parts, std::size_t block) {
  for (const Share& part : parts) {
    if (part.waiting == nullptr) continue;
    std::byte* const to = at(part) + static_cast<std::size_t>(rank_) * block;
    const std::size_t rows = part.rows[static_cast<std::size_t>(rank_)];
    const std::size_t rowBytes = part.announced.rowLength * sizeOf(part.announced.dtype);
    std::byte* numbers = to;
    std::byte* data = to + rows * sizeof(std::int64_t);
    for (const SomeRows& one : part.waiting->given()) {
      if (one.rows.empty()) continue;
      copyBytes(numbers, one.rows.data(), one.rows.size_bytes());
      copyBytes(data, one.data, one.rows.size() * rowBytes);
      numbers += one.rows.size_bytes();
      data += one.rows.size() * rowBytes;
    }
  }
}

void AllreduceEngine::gatherRows(std::size_t block) {
  if (block == 0) return;
  const void* const in =
      static_cast<const std::byte*>(buffer_) + static_cast<std::size_t>(rank_) * block;
  void* const out = buffer_;
  comm_->allGather({.in = {&in, 1}, .out = {&out, 1}}, block, DType::uint8,
                   {.timeoutMs = options_.timeoutMs});
}

void AllreduceEngine::giveRows(const Share& part, std::size_t block, Operation& to) const {
  for (std::size_t worker = 0; worker < part.rows.size(); ++worker) {
    const std::byte* const from = at(part) + worker * block;
    const std::size_t numbers = part.rows[worker] * sizeof(std::int64_t);
    auto& rows = to.inRows.emplace_back(part.rows[worker]);
    copyBytes(rows.data(), from, numbers);
    to.in.push_back(from + numbers);
  }
}

}  // namespace gradlink

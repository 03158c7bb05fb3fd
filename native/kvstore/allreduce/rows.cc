// Pushes of rows alone: what each worker brings is gathered, and each worker's store adds it up in
// the order of the workers.
//
// A worker's block has for each key the numbers of its rows, then the rows. Blocks are as long as
// the longest, since gathering blocks of one length is one call.

#include <utility>

#include "core/kernels/copy_bytes.h"
#include "kvstore/allreduce/allreduce_engine.h"

namespace gradlink {

/// How many rows there are is known once those that come several times are added up. Sums of halves
/// would be rounded here and again where they arrive: those travel one by one.
void AllreduceEngine::countRows(News& news) const {
  const Operation& operation = news.ofRows->operation;
  std::vector<SomeRows> parts;
  for (std::size_t i = 0; i < operation.in.size(); ++i) {
    parts.push_back({operation.in[i], operation.inRows[i]});
  }
  const auto [rowLength, dtype] = std::pair(news.announced.rowLength, news.announced.dtype);
  news.ofRows->touched = isHalf(dtype) ? listRows(parts, rowLength, dtype)
                                       : sumRows(parts, rowLength, Partial::none(dtype));
  news.announced.rows = static_cast<std::uint32_t>(news.ofRows->touched.rows.size());
}

void AllreduceEngine::fillRows(const std::vector<Share>& parts, std::size_t block) {
  for (const Share& part : parts) {
    if (part.waiting == nullptr) continue;
    const SortedRows& touched = part.waiting->touched;
    if (touched.rows.empty()) continue;
    std::byte* const to = at(part) + static_cast<std::size_t>(rank_) * block;
    const std::size_t numbers = touched.rows.size() * sizeof(std::int64_t);
    const std::size_t rowBytes = part.announced.rowLength * sizeOf(part.announced.dtype);
    copyBytes(to, touched.rows.data(), numbers);
    copyBytes(to + numbers, touched.data.data(), touched.rows.size() * rowBytes);
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

/// Makes a push of what all workers bring.
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

// What a shard answers to pulls.
#include <span>
#include <utility>

#include "kvstore/server/shard.h"

namespace gradlink::dist {

void ServerShard::pull(const Header& header, int worker) {
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    pieces_[p].pulls.push_back({worker, header.request, header.round, {}});
    answerPulls(p);
  }
}

void ServerShard::pullRows(const Header& header, const WireMessage& message) {
  const std::span runs(static_cast<const ShardRun*>(message.payload),
                       message.bytes / sizeof(ShardRun));
  std::vector<std::vector<ElementRun>> wanted(pieces_.size());
  std::uint64_t end = 0;
  for (const ShardRun& run : runs) {
    const std::uint64_t piece = run.first / step_;
    const std::uint64_t first = run.first % step_;
    if (run.first < end || run.first >= count_ || run.count == 0 ||
        run.count > countOf(piece) - first) {
      throw Error(ErrorCode::mismatch, "key " + name_ + ": worker " +
                                           std::to_string(message.source) +
                                           " asked for rows that it has not");
    }
    end = run.first + run.count;
    wanted[piece].push_back(
        {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(run.count)});
  }
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    if (wanted[p].empty()) continue;
    pieces_[p].pulls.push_back(
        {message.source, header.request, header.round, std::move(wanted[p])});
    answerPulls(p);
  }
}

void ServerShard::answerPulls(std::size_t index) {
  ShardPiece& piece = pieces_[index];
  if (!piece.ready || piece.pulls.empty()) return;
  std::erase_if(piece.pulls, [&](const Waiting& pull) {
    const std::uint64_t rounds =
        context_.asynchronous ? piece.applied[static_cast<std::size_t>(pull.worker)] : piece.closed;
    if (rounds < pull.round) return false;
    if (pull.runs.empty()) {
      sendValue(index, pull.worker, pull.request);
    } else {
      sendRows(index, pull);
    }
    return true;
  });
}

Header ServerShard::valueHeader(std::size_t index, std::uint64_t request) const {
  Header header{};
  header.type = MessageType::value;
  header.dtype = dtype_;
  header.shard = number_;
  header.piece = static_cast<std::uint32_t>(index);
  header.count = countOf(index);
  header.round = pieces_[index].closed;
  header.request = request;
  return header;
}

void ServerShard::sendRows(std::size_t index, const Waiting& pull) {
  ServerTrace* const trace = context_.tracing();
  const double begin = trace == nullptr ? 0 : ServerTrace::now();
  const std::size_t size = sizeOf(dtype_);
  std::vector<std::byte> rows;
  for (const ElementRun& run : pull.runs) {
    const std::byte* const from = valueOf(index) + run.first * size;
    rows.insert(rows.end(), from, from + run.count * size);
  }
  Header header = valueHeader(index, pull.request);
  header.encoding = Encoding::rows;
  context_.replies.rows(pull.worker, header, rows);
  if (trace != nullptr) noteAnswer(*trace, begin, pull.worker, rows.size());
}

void ServerShard::sendValue(std::size_t index, int worker, std::uint64_t request) {
  ServerTrace* const trace = context_.tracing();
  const double begin = trace == nullptr ? 0 : ServerTrace::now();
  const Header header = valueHeader(index, request);
  const std::size_t bytes = header.count * sizeOf(dtype_);
  pieces_[index].readers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t ticket = (std::uint64_t{number_} + 1) << 32 | header.piece;
  context_.replies.value(worker, header, valueOf(index), bytes, ticket);
  if (trace != nullptr) noteAnswer(*trace, begin, worker, bytes);
}

}  // namespace gradlink::dist

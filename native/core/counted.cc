#include "core/counted.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/thread_pool.h"

namespace gradlink {
namespace {

// Above the tags of programs. Messages of one tag and pair keep their order.
constexpr int kCountedTag = std::numeric_limits<int>::max() - 8;
// Below this many bytes, waking a pool thread costs more than the second core saves.
constexpr std::size_t kInlineMoveBytes = 64 << 10;

[[noreturn]] void disagree(Kind kind, int rank, const std::string& text) {
  throw harmless(ErrorCode::mismatch, nameOf(kind), text).withRank(rank);
}

/// Errors of the inner calls carry the outer call's name.
template <class Body>
void inNameOf(Kind kind, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    Error ours(error.code, std::string(nameOf(kind)) + ": " + error.what());
    ours.usable = error.usable;
    throw ours.withRank(error.rank).withOp(nameOf(kind));
  }
}

}  // namespace

CountedTable::CountedTable(const Call& call, std::span<const int> held, int size,
                           const Exchange& exchange)
    : kind_(call.shape.kind),
      table_(
          size, kHeads, held.size(),
          [&](std::size_t i, const RankTable::Row& row) {
            const CountedPart& part = call.counted->parts[i];
            const auto shape = std::bit_cast<Announced>(ShapeOnWire(call.shape));
            std::copy(shape.begin(), shape.end(), row.head);
            if (part.hasPlace) row.head[kRoom] = static_cast<std::int64_t>(part.capacity);
            std::copy_n(part.sent.begin(), size, row.to);
            if (!part.expected.empty()) std::copy_n(part.expected.begin(), size, row.from);
          },
          exchange) {
  check(call, held, exchange);
}

// Reports the first disagreement in rank order, so all ranks report the same one.
void CountedTable::check(const Call& call, std::span<const int> held,
                         const Exchange& exchange) const {
  std::vector<ShapeOnWire> calls;
  for (int r = 0; r < size(); ++r) {
    Announced shape;
    std::copy_n(table_.head(r), shape.size(), shape.begin());
    calls.push_back(std::bit_cast<ShapeOnWire>(shape));
  }
  checkSame<ShapeOnWire>(call.op(), calls, held.front(), [&] {
    return exchangeRecords(exchange, size(), CallName(call.options.name), held.size());
  });
  for (int to = 0; to < size(); ++to) {
    for (int from = 0; from < size(); ++from) {
      if (kind_ == Kind::reduceScatterV && sent(from, to) != sent(0, to)) {
        disagree(kind_, from,
                 "rank " + std::to_string(from) + " says that rank " + std::to_string(to) +
                     " gets " + std::to_string(sent(from, to)) + " elements, rank 0 says " +
                     std::to_string(sent(0, to)) + ". All ranks must give the same counts");
      }
      const std::int64_t expected = table_.from(from, to);
      if (expected != RankTable::kNone && expected != table_.to(from, to)) {
        disagree(kind_, from,
                 "rank " + std::to_string(from) + " sends " + std::to_string(sent(from, to)) +
                     " elements to rank " + std::to_string(to) + ", which expects " +
                     std::to_string(expected));
      }
    }
    const std::int64_t room = table_.head(to)[kRoom];
    if (room != RankTable::kNone && static_cast<std::size_t>(room) < total(to)) {
      disagree(kind_, to,
               "rank " + std::to_string(to) + " gets " + std::to_string(total(to)) +
                   " elements, and its out has room for " + std::to_string(room));
    }
  }
}

std::size_t CountedTable::inBegin(int from, int to) const {
  std::size_t begin = 0;
  for (int r = 0; !sendsWhole(kind_) && r < to; ++r) begin += sent(from, r);
  return begin;
}

std::size_t CountedTable::outBegin(int from, int to) const {
  std::size_t begin = 0;
  for (int r = 0; r < from; ++r) begin += sent(r, to);
  return begin;
}

std::size_t CountedTable::total(int to) const {
  return kind_ == Kind::reduceScatterV ? sent(0, to) : outBegin(size(), to);
}

std::size_t CountedTable::length(int from) const {
  if (!sendsWhole(kind_)) return inBegin(from, size());
  std::size_t most = 0;
  for (int to = 0; to < size(); ++to) most = std::max(most, sent(from, to));
  return most;
}

void CountedTable::place(const Call& call, std::span<const int> held) const {
  const bool tellsAll = kind_ == Kind::scatterV || kind_ == Kind::reduceScatterV;
  for (std::size_t i = 0; i < held.size(); ++i) {
    CountedPart& part = call.counted->parts[i];
    part.counts.clear();
    for (int r = 0; r < size(); ++r) {
      part.counts.push_back(tellsAll ? sent(call.shape.root, r) : sent(r, held[i]));
    }
    part.got = total(held[i]);
    if (!part.hasPlace && part.got > 0) part.out = call.counted->makePlace(i, part.got);
  }
}

void moveHeld(const Call& call, const CountedTable& table) {
  const std::size_t element = sizeOf(call.shape.dtype);
  const auto ranks = static_cast<std::size_t>(table.size());
  const auto fill = [&](std::size_t to) {
    auto* next = static_cast<std::byte*>(call.counted->parts[to].out);
    for (std::size_t from = 0; from < ranks; ++from) {
      const int source = static_cast<int>(from);
      const int target = static_cast<int>(to);
      const std::size_t bytes = table.sent(source, target) * element;
      if (bytes == 0) continue;
      const auto* const in = static_cast<const std::byte*>(call.counted->parts[from].in);
      copyBytes(next, in + table.inBegin(source, target) * element, bytes);
      next += bytes;
    }
  };
  std::size_t bytes = 0;
  for (std::size_t to = 0; to < ranks; ++to) bytes += table.total(static_cast<int>(to)) * element;
  if (bytes >= kInlineMoveBytes) return ThreadPool::shared().parallel(ranks, fill);
  for (std::size_t to = 0; to < ranks; ++to) fill(to);
}

namespace {

/// The inner calls of a communicator that holds one rank.
class Moves {
 public:
  Moves(Communicator& communicator, const Call& call, const CountedTable& table)
      : communicator_(communicator),
        call_(call),
        table_(table),
        rank_(communicator.heldRanks()[0]) {}

  /// Every backend has a fast broadcast.
  void broadcasts() {
    for (int root = 0; root < table_.size(); ++root) {
      const std::size_t count = table_.sent(root, rank_);
      if (count == 0) continue;
      const void* const in[] = {root == rank_ ? part().in : nullptr};
      void* const out[] = {place(root)};
      communicator_.broadcast({in, out}, count, call_.shape.dtype, root, call_.options);
    }
  }

  // All ranks process the messages in one order: by distance, even senders first, then by sender.
  // So both ranks of the first unfinished message are always ready for it.
  void messages() {
    const std::size_t own = table_.sent(rank_, rank_) * sizeOf(call_.shape.dtype);
    copyBytes(place(rank_), input(rank_), own);
    const int size = table_.size();
    for (int distance = 1; distance < size; ++distance) {
      const int to = (rank_ + distance) % size;
      const int from = (rank_ + size - distance) % size;
      const bool sendFirst = from % 2 != rank_ % 2 ? rank_ % 2 == 0 : rank_ < from;
      if (sendFirst) send(to);
      receive(from);
      if (!sendFirst) send(to);
    }
  }

 private:
  const CountedPart& part() const { return call_.counted->parts[0]; }
  const std::byte* input(int to) const {
    return static_cast<const std::byte*>(part().in) +
           table_.inBegin(rank_, to) * sizeOf(call_.shape.dtype);
  }
  std::byte* place(int from) const {
    return static_cast<std::byte*>(part().out) +
           table_.outBegin(from, rank_) * sizeOf(call_.shape.dtype);
  }
  void send(int to) {
    const std::size_t count = table_.sent(rank_, to);
    if (count == 0) return;
    communicator_.send(input(to), count, call_.shape.dtype, to, kCountedTag, call_.options);
  }
  void receive(int from) {
    const std::size_t count = table_.sent(from, rank_);
    if (count == 0) return;
    communicator_.receive(place(from), count, call_.shape.dtype, from, kCountedTag, call_.options);
  }

  Communicator& communicator_;
  const Call& call_;
  const CountedTable& table_;
  int rank_;
};

void reduceEach(Communicator& communicator, const Call& call, const CountedTable& table) {
  const auto held = communicator.heldRanks();
  for (int root = 0; root < table.size(); ++root) {
    const std::size_t count = table.total(root);
    if (count == 0) continue;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto* const data = static_cast<const std::byte*>(call.counted->parts[i].in);
      in.push_back(data + table.inBegin(held[i], root) * sizeOf(call.shape.dtype));
      out.push_back(held[i] == root ? call.counted->parts[i].out : nullptr);
    }
    communicator.reduce({in, out}, count, call.shape.dtype, call.shape.op, root, call.options);
  }
}

}  // namespace

void runCounted(Communicator& communicator, const Call& call) {
  const auto held = communicator.heldRanks();
  const int size = communicator.size();
  const Exchange exchange = exchangeOver(communicator, call.options);
  const CountedTable table(call, held, size, [&](const void* own, void* all, std::size_t bytes) {
    inNameOf(call.shape.kind, [&] { exchange(own, all, bytes); });
  });
  try {
    table.place(call, held);
  } catch (const std::exception& error) {
    if (size > 1) communicator.abort(error.what());
    throw;
  }
  inNameOf(call.shape.kind, [&] {
    if (hasOp(call.shape.kind)) return reduceEach(communicator, call, table);
    if (held.size() == static_cast<std::size_t>(size)) return moveHeld(call, table);
    Moves moves(communicator, call, table);
    if (call.shape.kind == Kind::allGatherV) {
      moves.broadcasts();
    } else {
      moves.messages();
    }
  });
}

}  // namespace gradlink

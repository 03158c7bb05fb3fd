#include "core/neighbors.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink {
namespace {

// Above the tags of programs. Messages of one tag and pair keep their order.
constexpr int kTag = std::numeric_limits<int>::max() - 7;

void checkPeers(std::span<const NeighborBlock> sources, std::span<const int> destinations, int rank,
                int size) {
  std::vector<int> seen(static_cast<std::size_t>(size));
  const auto check = [&](int peer, int bit) {
    if (peer < 0 || peer >= size || peer == rank ||
        (seen[static_cast<std::size_t>(peer)] & bit) != 0) {
      throw misuse("neighborAllGather", "expected each other rank of 0.." +
                                            std::to_string(size - 1) + " at most once, got " +
                                            std::to_string(peer));
    }
    seen[static_cast<std::size_t>(peer)] |= bit;
  };
  for (const NeighborBlock& source : sources) check(source.rank, 1);
  for (const int destination : destinations) check(destination, 2);
}

template <class Part>
const Part& onlyOne(std::span<const Part> parts, const char* op) {
  if (parts.size() == 1) return parts[0];
  throw misuse(op, "expected the part of the one rank held, got " + std::to_string(parts.size()));
}

// Reports the first disagreement in rank order, so all ranks report the same one.
void check(const RankTable& table) {
  constexpr const char* kOp = "neighborAllGather";
  const auto typeOf = [&](int rank) {
    return std::string(nameOf(static_cast<DType>(table.head(rank)[1])));
  };
  for (int from = 0; from < table.size(); ++from) {
    if (table.head(from)[1] != table.head(0)[1]) {
      throw ranksDisagree(kOp, from, 0, "element type " + typeOf(from) + " against " + typeOf(0));
    }
    for (int to = 0; to < table.size(); ++to) {
      const std::int64_t sent = table.to(from, to);
      const std::int64_t awaited = table.from(from, to);
      if (sent == awaited) continue;
      if (sent == RankTable::kNone || awaited == RankTable::kNone) {
        throw unmatched(kOp, from, to, awaited == RankTable::kNone);
      }
      throw ranksDisagree(kOp, from, to,
                          "the first sends " + std::to_string(sent) +
                              " elements, the second expects " + std::to_string(awaited));
    }
  }
}

}  // namespace

RankTable neighborTable(std::span<const NeighborGather> own, int size, DType dtype,
                        const Exchange& exchange) {
  const auto fill = [&](std::size_t i, const RankTable::Row& row) {
    const NeighborGather& one = own[i];
    checkPeers(one.sources, one.destinations, one.rank, size);
    row.head[0] = static_cast<std::int64_t>(one.count);
    row.head[1] = static_cast<std::int64_t>(dtype);
    for (const NeighborBlock& s : one.sources)
      row.from[s.rank] = static_cast<std::int64_t>(s.count);
    for (const int to : one.destinations) row.to[to] = row.head[0];
  };
  RankTable table(size, 2, own.size(), fill, exchange);
  check(table);
  return table;
}

void runNeighborAllGather(Communicator& communicator, const Call& call) {
  const NeighborGather& own = onlyOne(call.gathers, call.op());
  const DType dtype = call.shape.dtype;
  const int size = communicator.size();
  const int rank = own.rank;
  const RankTable table =
      neighborTable(call.gathers, size, dtype, exchangeOver(communicator, call.options));

  std::vector<std::byte*> places(static_cast<std::size_t>(size));
  auto* next = static_cast<std::byte*>(own.out);
  for (const NeighborBlock& source : own.sources) {
    places[static_cast<std::size_t>(source.rank)] = next;
    next += source.count * sizeOf(dtype);
  }
  const auto move = [&](int from, int to) {
    const auto length = static_cast<std::size_t>(table.head(from)[0]);
    if (!table.sends(from, to) || length == 0) return;
    if (from == rank) {
      communicator.send(own.in, length, dtype, to, kTag, call.options);
    } else {
      communicator.receive(places[static_cast<std::size_t>(from)], length, dtype, from, kTag,
                           call.options);
    }
  };
  // All ranks process the messages in one order: by distance, even senders first, then by sender.
  // So both ranks of the first unfinished message are always ready for it.
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    const bool sendFirst = from % 2 != rank % 2 ? rank % 2 == 0 : rank < from;
    if (sendFirst) move(rank, to);
    move(from, rank);
    if (!sendFirst) move(rank, to);
  }
}

void runPairGossip(Communicator& communicator, const Call& call) {
  const Gossip& own = onlyOne(call.pairs, call.op());
  const int peer = own.peer;
  const std::size_t count = own.count;
  const DType dtype = call.shape.dtype;
  const int rank = communicator.heldRanks()[own.held];
  if (peer < 0 || peer >= communicator.size() || peer == rank) {
    throw misuse("pairGossip", "expected a rank other than its own, got " + std::to_string(peer));
  }
  std::vector<std::byte> theirs(count * sizeOf(dtype));
  const auto send = [&] { communicator.send(own.in, count, dtype, peer, kTag, call.options); };
  if (rank < peer) send();
  const Received got = communicator.receive(theirs.data(), count, dtype, peer, kTag, call.options);
  if (rank > peer) send();
  if (got.count != count) {
    throw harmless(ErrorCode::mismatch, "pairGossip",
                   "rank " + std::to_string(rank) + " brings " + std::to_string(count) +
                       " elements, rank " + std::to_string(peer) + " " + std::to_string(got.count));
  }
  const void* const src[] = {own.in, theirs.data()};
  const double weights[] = {own.selfWeight, own.pairWeight};
  weightedSum(own.out, src, weights, count, dtype);
}

}  // namespace gradlink

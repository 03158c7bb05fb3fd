#include "core/neighbors.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink {
namespace {

// Above what programs use; messages of one tag and pair keep their order anyway.
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

[[noreturn]] void neighborsDisagree(int first, int second, const std::string& text) {
  throw harmless(ErrorCode::mismatch, "neighborAllGather",
                 "rank " + std::to_string(first) + " and rank " + std::to_string(second) +
                     " disagree: " + text);
}

}  // namespace

NeighborTable::NeighborTable(std::span<const NeighborGather> own, int size, DType dtype,
                             const Exchange& exchange)
    : size_(size),
      width_(2 + 2 * static_cast<std::size_t>(size)),
      cells_(static_cast<std::size_t>(size) * width_) {
  for (const NeighborGather& one : own) checkPeers(one.sources, one.destinations, one.rank, size);
  std::vector<std::int64_t> rows(own.size() * width_, kNone);
  std::int64_t* row = rows.data();
  for (const NeighborGather& one : own) {
    row[0] = static_cast<std::int64_t>(one.count);
    row[1] = static_cast<std::int64_t>(dtype);
    for (const NeighborBlock& s : one.sources) {
      row[2 + static_cast<std::size_t>(s.rank)] = static_cast<std::int64_t>(s.count);
    }
    for (const int to : one.destinations) row[2 + static_cast<std::size_t>(size + to)] = 1;
    row += width_;
  }
  exchange(rows.data(), cells_.data(), width_ * sizeof(std::int64_t));
  check();
}

// The first disagreement in the order of ranks: the same on all.
void NeighborTable::check() const {
  const auto nameAt = [&](int rank) {
    return std::string(nameOf(static_cast<DType>(at(rank, 1))));
  };
  for (int from = 0; from < size_; ++from) {
    if (at(from, 1) != at(0, 1)) {
      neighborsDisagree(from, 0, "element type " + nameAt(from) + " against " + nameAt(0));
    }
    for (int to = 0; to < size_; ++to) {
      const std::int64_t awaited = at(to, 2 + from);
      if (sends(from, to) && awaited == kNone) {
        neighborsDisagree(
            from, to,
            "the first names the second as a destination, which does not name it as a source");
      }
      if (!sends(from, to) && awaited != kNone) {
        neighborsDisagree(
            from, to,
            "the second names the first as a source, which does not name it as a destination");
      }
      if (awaited != kNone && awaited != at(from, 0)) {
        neighborsDisagree(from, to,
                          "the first sends " + std::to_string(count(from)) +
                              " elements, the second expects " + std::to_string(awaited));
      }
    }
  }
}

void runNeighborAllGather(Communicator& communicator, const Call& call) {
  const NeighborGather& own = onlyOne(call.gathers, call.op());
  const DType dtype = call.shape.dtype;
  const int size = communicator.size();
  const int rank = own.rank;
  const NeighborTable table(
      call.gathers, size, dtype, [&](const void* mine, void* all, std::size_t bytes) {
        const void* const given[] = {mine};
        void* const gathered[] = {all};
        communicator.allGather({given, gathered}, bytes, DType::uint8, call.options);
      });

  std::vector<std::byte*> places(static_cast<std::size_t>(size));
  auto* next = static_cast<std::byte*>(own.out);
  for (const NeighborBlock& source : own.sources) {
    places[static_cast<std::size_t>(source.rank)] = next;
    next += source.count * sizeOf(dtype);
  }
  const auto move = [&](int from, int to) {
    const std::size_t length = table.count(from);
    if (!table.sends(from, to) || length == 0) return;
    if (from == rank) {
      communicator.send(own.in, length, dtype, to, kTag, call.options);
    } else {
      communicator.receive(places[static_cast<std::size_t>(from)], length, dtype, from, kTag,
                           call.options);
    }
  };
  // All ranks go through the messages in one order (by distance, even senders first, then by
  // sender), so that the first unfinished one always finds both of its ranks ready.
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

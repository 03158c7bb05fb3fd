// Collectives that only move data, and the neighbors' weighted sums.
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "messages/stages.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

/// A piece of a pipeline: long enough for bandwidth, short enough that forwarding begins early.
constexpr std::size_t kPieceBytes = 256 << 10;
constexpr std::size_t kReceivesAhead = 8;

/// The parts of a broadcast: one for each rank but the root, in rank order.
struct Parts {
  std::size_t bytes;
  int size;
  int root;

  /// A single rank has nobody to send to.
  std::size_t others() const {
    return std::max<std::size_t>(static_cast<std::size_t>(size), 2) - 1;
  }
  std::size_t begin(int rank) const {
    const auto at = static_cast<std::size_t>(rank < root ? rank : rank - 1);
    const std::size_t parts = others();
    return bytes / parts * at + std::min(at, bytes % parts);
  }
  std::size_t length(int rank) const {
    const auto at = static_cast<std::size_t>(rank < root ? rank : rank - 1);
    const std::size_t parts = others();
    return bytes / parts + (at < bytes % parts ? 1 : 0);
  }
};

void copyBlock(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from) copyBytes(to, from, bytes);
}

}  // namespace

void runBroadcast(Link& link, const StagedCall& call, Wait& wait) {
  const std::size_t bytes = call.shape.count * sizeOf(call.shape.dtype);
  const int root = call.shape.root;
  const int me = link.rank();
  const Parts parts{bytes, link.size(), root};
  if (link.size() == 1 || me == root) {
    Batch batch(link);
    // Round robin over the ranks, so all can start to forward early.
    for (std::size_t at = 0; link.size() > 1 && at < parts.length(root == 0 ? 1 : 0);
         at += kPieceBytes) {
      for (int i = 1; i < link.size(); ++i) {
        const int peer = (me + i) % link.size();
        const std::size_t whole = parts.length(peer);
        if (at >= whole) continue;
        batch.send(call.in + parts.begin(peer) + at, std::min(kPieceBytes, whole - at), peer,
                   kMoveTag);
      }
    }
    batch.wait(wait);
    copyBlock(call.out, call.in, bytes);
    return;
  }
  Batch others(link);
  for (int i = 1; i < link.size(); ++i) {
    const int peer = (me + i) % link.size();
    if (peer == root) continue;
    for (std::size_t at = 0; at < parts.length(peer); at += kPieceBytes) {
      others.receive(call.out + parts.begin(peer) + at,
                     std::min(kPieceBytes, parts.length(peer) - at), peer, kMoveTag);
    }
  }
  std::deque<std::unique_ptr<Batch>> fromRoot;
  const std::size_t own = parts.length(me);
  std::size_t posted = 0;
  std::size_t passed = 0;
  while (passed < own) {
    while (posted < own && fromRoot.size() < kReceivesAhead) {
      const std::size_t length = std::min(kPieceBytes, own - posted);
      fromRoot.push_back(std::make_unique<Batch>(link));
      fromRoot.back()->receive(call.out + parts.begin(me) + posted, length, root, kMoveTag);
      posted += length;
    }
    if (fromRoot.front()->receiving()) {
      others.progress();
      wait.pause();
      continue;
    }
    wait.came();
    fromRoot.pop_front();
    const std::size_t length = std::min(kPieceBytes, own - passed);
    for (int i = 1; i < link.size(); ++i) {
      const int peer = (me + i) % link.size();
      if (peer != root) others.send(call.out + parts.begin(me) + passed, length, peer, kMoveTag);
    }
    passed += length;
  }
  others.wait(wait);
}

void runMoves(Link& link, const StagedCall& call, Wait& wait) {
  const std::size_t block = call.shape.count * sizeOf(call.shape.dtype);
  const int me = link.rank();
  const Kind kind = call.shape.kind;
  const bool isRoot = me == call.shape.root;
  const auto at = [&](int rank) { return static_cast<std::size_t>(rank) * block; };
  Batch batch(link);
  for (int i = 1; i < link.size(); ++i) {
    const int from = (me + i) % link.size();
    if (kind == Kind::scatter) {
      if (from == call.shape.root) batch.receive(call.out, block, from, kMoveTag);
    } else if (kind != Kind::gather || isRoot) {
      batch.receive(call.out + at(from), block, from, kMoveTag);
    }
  }
  for (int i = 1; i < link.size(); ++i) {
    const int to = (me - i + link.size()) % link.size();
    if (kind == Kind::gather) {
      if (to == call.shape.root) batch.send(call.in, block, to, kMoveTag);
    } else if (kind != Kind::scatter || isRoot) {
      batch.send(call.in + (kind == Kind::allGather ? 0 : at(to)), block, to, kMoveTag);
    }
  }
  if (kind == Kind::allGather || (kind == Kind::gather && isRoot)) {
    copyBlock(call.out + at(me), call.in, block);
  } else if (kind == Kind::allToAll) {
    copyBlock(call.out + at(me), call.in + at(me), block);
  } else if (kind == Kind::scatter && isRoot) {
    copyBlock(call.out, call.in + at(me), block);
  }
  batch.wait(wait);
}

void runNeighbors(Link& link, const StagedCall& call, std::span<const WeightRow> rows,
                  Scratch& scratch, Wait& wait) {
  const std::size_t elementSize = sizeOf(call.shape.dtype);
  const WeightRow& own = rows[static_cast<std::size_t>(link.rank())];
  std::vector<int> destinations;
  for (int r = 0; r < link.size(); ++r) {
    const bool wants = rows[static_cast<std::size_t>(r)].reads(link.rank());
    if (r != link.rank() && wants) destinations.push_back(r);
  }
  std::vector<double> weights;
  for (const auto& [rank, weight] : own.terms) weights.push_back(weight);
  // Two pieces at once: one is summed while the next one arrives.
  const std::size_t step = kPieceBytes / elementSize;
  std::byte* const memory = scratch.take(2 * own.terms.size() * kPieceBytes);
  std::vector<const void*> src[2];
  std::unique_ptr<Batch> batches[2];
  const auto lengthAt = [&](std::size_t at) { return std::min(step, call.shape.count - at); };
  const auto begin = [&](std::size_t at) {
    const std::size_t set = at / step % 2;
    const std::size_t bytes = lengthAt(at) * elementSize;
    const std::byte* in = call.in + at * elementSize;
    batches[set] = std::make_unique<Batch>(link);
    src[set].clear();
    for (const auto& [rank, weight] : own.terms) {
      std::byte* slot = memory + (set * own.terms.size() + src[set].size()) * kPieceBytes;
      src[set].push_back(rank == link.rank() ? in : slot);
      if (rank != link.rank()) batches[set]->receive(slot, bytes, rank, kMoveTag);
    }
    for (int destination : destinations) batches[set]->send(in, bytes, destination, kMoveTag);
  };
  if (call.shape.count > 0) begin(0);
  for (std::size_t at = 0; at < call.shape.count; at += step) {
    if (at + step < call.shape.count) begin(at + step);
    wait.came();
    const std::size_t set = at / step % 2;
    // The sum may overwrite data being sent.
    batches[set]->wait(wait);
    weightedSum(call.out + at * elementSize, src[set], weights, lengthAt(at), call.shape.dtype,
                own.divisor);
  }
}

}  // namespace gradlink::messages

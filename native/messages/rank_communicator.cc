#include "messages/rank_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "messages/stages.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

int rankIn(CommHandle comm) {
  int rank = 0;
  checkMpi("ask for the rank", shim().rank(comm, &rank));
  return rank;
}

}  // namespace

RankCommunicator::RankCommunicator(CommHandle comm, std::vector<int> worldRanks, double timeoutMs)
    : MpiCommunicator(rankIn(comm)),
      link_(comm),
      worldRanks_(std::move(worldRanks)),
      timeoutMs_(timeoutMs),
      agreement_(link_),
      messages_(link_),
      in_(static_cast<std::size_t>(link_.size())),
      out_(in_.size()) {}

RankCommunicator::~RankCommunicator() { close(); }

const char* RankCommunicator::backend() const { return nameOfTransport(); }

void RankCommunicator::run(const Call& call) {
  const Kind kind = call.shape.kind;
  if (kind == Kind::allReduce && pairAllReduce(call.shape, call.buffers, call.options)) return;
  // Counted collectives, unless they are a sum for each rank, which MPI does in stages.
  const bool counts = isCounted(kind) && !hasOp(kind);
  const bool weighs = kind == Kind::neighborAllReduce;
  if (!isPlain(kind) && !counts && !weighs && !isMessage(kind)) return compose(call);
  guarded(call.op(), [&] {
    if (isMessage(kind)) return transfer(call);
    if (weighs) {
      checkBuffers(call.shape, call.buffers);
      ownNeighborhood(call.neighborhoods);
    }
    Wait wait(link_, call.op(), timeoutOf(call.options), Wait::Kind::agreement, call.options.name);
    if (kind == Kind::barrier) return agreement_.meet({}, {}, wait);
    if (counts) return count(call, wait);
    if (weighs) return weigh(call, wait);
    move(call.shape, call.buffers, wait);
  });
}

void RankCommunicator::move(const Shape& shape, const Buffers& buffers, Wait& wait) {
  checkBuffers(shape, buffers);
  if (largestInput(shape, size()) <= agreement_.mostBytes()) return oneShot(shape, buffers, wait);
  agreement_.meet(shape, {}, wait);
  const StagedCall call{shape, static_cast<const std::byte*>(buffers.in[0]),
                        static_cast<std::byte*>(buffers.out[0])};
  if (hasOp(shape.kind)) return runReduction(link_, call, scratch_, wait);
  if (shape.kind == Kind::broadcast) return runBroadcast(link_, call, wait);
  runMoves(link_, call, wait);
}

// The announcement carries the data: every rank computes its own result.
void RankCommunicator::oneShot(const Shape& shape, const Buffers& buffers, Wait& wait) {
  const std::size_t block = shape.count * sizeOf(shape.dtype);
  const std::size_t mine = inBlocks(shape, size(), rank()) * block;
  agreement_.meet(shape, {static_cast<const std::byte*>(buffers.in[0]), mine}, wait);
  if (shape.count == 0 || outBlocks(shape, size(), rank()) == 0) return;
  for (int r = 0; r < size(); ++r) {
    in_[static_cast<std::size_t>(r)] = {agreement_.payload(r).data(), shape.count, 0};
  }
  out_[static_cast<std::size_t>(rank())] = {static_cast<std::byte*>(buffers.out[0]), shape.count,
                                            0};
  runDirect({shape, in_, out_, {}}, 0, shape.count);
}

// A fast path of oneShot() for the most frequent small call. False for other or invalid calls.
bool RankCommunicator::pairAllReduce(const Shape& shape, const Buffers& buffers,
                                     const CallOptions& options) {
  const std::size_t elementSize = sizeOf(shape.dtype);
  if (size() != 2 || shape.count == 0 || shape.count > agreement_.mostBytes() / elementSize ||
      buffers.in.size() != 1 || buffers.out.size() != 1 || buffers.in[0] == nullptr ||
      buffers.out[0] == nullptr) {
    return false;
  }
  guarded("allReduce", [&] {
    Wait wait(link_, "allReduce", timeoutOf(options), Wait::Kind::agreement, options.name);
    agreement_.meet(
        shape, {static_cast<const std::byte*>(buffers.in[0]), shape.count * elementSize}, wait);
    const void* const src[] = {agreement_.payload(0).data(), agreement_.payload(1).data()};
    reduceMany(buffers.out, src, shape.count, shape.dtype, shape.op);
  });
  return true;
}

void RankCommunicator::weigh(const Call& call, Wait& wait) {
  const Neighborhood& own = call.neighborhoods[0];
  // The rendezvous includes the weights, so a rank then needs its sources only, and its own
  // divisor.
  auto rows = resolveNeighbors(exchangeNeighborhoods(call.shape, own, wait));
  rows[static_cast<std::size_t>(rank())].divisor = own.divisor;
  runNeighbors(link_,
               {call.shape, static_cast<const std::byte*>(call.buffers.in[0]),
                static_cast<std::byte*>(call.buffers.out[0])},
               rows, scratch_, wait);
}

namespace {

struct Edge {
  std::int32_t rank;
  std::int32_t isSource;
  double weight;
};

struct Summary {
  double selfWeight;
  std::uint32_t edges;
  std::uint32_t check;
};

}  // namespace

// Sent with the announcement if every rank's list is short, as in sparse graphs; else after it.
std::vector<Neighborhood> RankCommunicator::exchangeNeighborhoods(const Shape& shape,
                                                                  const Neighborhood& own,
                                                                  Wait& wait) {
  const auto fits = [&](std::size_t edges) {
    return sizeof(Summary) + edges * sizeof(Edge) <= agreement_.mostBytes();
  };
  std::vector<Edge> edges;
  for (const Neighbor& n : own.sources) edges.push_back({n.rank, 1, n.weight});
  for (const Neighbor& n : own.destinations) edges.push_back({n.rank, 0, n.weight});
  const Summary mine{own.selfWeight, static_cast<std::uint32_t>(edges.size()), own.check ? 1u : 0u};
  std::vector<std::byte> announced(sizeof(Summary) + edges.size() * sizeof(Edge));
  std::memcpy(announced.data(), &mine, sizeof(mine));
  if (!edges.empty()) {
    std::memcpy(announced.data() + sizeof(mine), edges.data(), edges.size() * sizeof(Edge));
  }
  agreement_.meet(shape,
                  std::span(announced).first(fits(edges.size()) ? announced.size() : sizeof(mine)),
                  wait);
  std::vector<Neighborhood> all(static_cast<std::size_t>(size()));
  std::vector<std::span<const std::byte>> lists(all.size());
  std::vector<std::uint32_t> counts(all.size());
  std::uint32_t most = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto payload = agreement_.payload(static_cast<int>(r));
    Summary theirs;
    std::memcpy(&theirs, payload.data(), sizeof(theirs));
    all[r].selfWeight = theirs.selfWeight;
    all[r].check = theirs.check != 0;
    lists[r] = payload.subspan(sizeof(theirs));
    counts[r] = theirs.edges;
    most = std::max(most, theirs.edges);
  }
  std::vector<std::vector<std::byte>> exchanged;
  if (!fits(most)) {
    exchanged = agreement_.exchange(std::as_bytes(std::span(edges)), most * sizeof(Edge), wait);
    std::copy(exchanged.begin(), exchanged.end(), lists.begin());
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t i = 0; i < counts[r]; ++i) {
      Edge edge;
      std::memcpy(&edge, lists[r].data() + i * sizeof(Edge), sizeof(Edge));
      auto& list = edge.isSource != 0 ? all[r].sources : all[r].destinations;
      list.push_back({edge.rank, edge.weight});
    }
  }
  return all;
}

// Short ones are sent from host memory, next to their envelope.
std::size_t RankCommunicator::leastGpuMessage() const {
  return takesGpuMemory() ? kEagerBytes + 1 : SIZE_MAX;
}

void RankCommunicator::transfer(const Call& call) {
  Message& own = ownMessage(call);
  Wait wait(link_, call.op(), timeoutOf(call.options), Wait::Kind::message);
  if (own.sends) return messages_.send(own.data, own.count, own.dtype, own.peer, own.tag, wait);
  own.got = messages_.receive(own.data, own.count, own.dtype, own.peer, own.tag, wait,
                              call.options.copyIn);
}

}  // namespace gradlink::messages

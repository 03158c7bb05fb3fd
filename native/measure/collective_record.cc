#include "measure/collective_record.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/error.h"
#include "measure/message_calls.h"

namespace gradlink::measure {
namespace {

bool everybody(int, int) { return true; }
bool nobody(int, int) { return false; }
bool rootOnly(int rank, int root) { return rank == root; }

BlockOrigin reduced(int, std::size_t block, int, int n) { return {n, 0, block}; }
BlockOrigin rootsBlock(int, std::size_t block, int root, int) {
  return {std::nullopt, root, block};
}
BlockOrigin blockOfEach(int, std::size_t block, int, int) {
  return {std::nullopt, static_cast<int>(block), 0};
}
BlockOrigin ownBlockReduced(int rank, std::size_t, int, int n) {
  return {n, 0, static_cast<std::size_t>(rank)};
}
BlockOrigin transposed(int rank, std::size_t block, int, int) {
  return {std::nullopt, static_cast<int>(block), static_cast<std::size_t>(rank)};
}
BlockOrigin ownBlockOfRoot(int rank, std::size_t, int root, int) {
  return {std::nullopt, root, static_cast<std::size_t>(rank)};
}

BlockOrigin blockOfPrevious(int rank, std::size_t, int, int n) {
  return {std::nullopt, (rank + n - 1) % n, 0};
}

template <Kind kind>
BlockOrigin scanned(int rank, std::size_t, int, int) {
  return {static_cast<int>(scannedRanks(kind, rank)), 0, 0};
}

Segment partFrom(int rank, std::size_t block, std::size_t count, DType dtype, int n) {
  const int from = static_cast<int>(block);
  return {partTarget(from, rank, count, dtype, n),
          partSource(from, rank, count, dtype, n),
          partOf(from, rank, count, dtype, n),
          {std::nullopt, from, 0}};
}

constexpr MessageCall kRing{Blocks::one, Blocks::one, ringMessages, passRing};
constexpr MessageCall kParts{Blocks::each, Blocks::each, partMessages, passParts, partFrom};
constexpr MessageCall kCube{Blocks::one, Blocks::each, cubeMessages, passCube};

constexpr CollectiveRecord kRecords[] = {
    {"allReduce", Kind::allReduce, InPlace::same, everybody, reduced},
    {"reduce", Kind::reduce, InPlace::same, rootOnly, reduced},
    {"broadcast", Kind::broadcast, InPlace::same, everybody, rootsBlock},
    {"allGather", Kind::allGather, InPlace::inInsideOut, everybody, blockOfEach},
    {"reduceScatter", Kind::reduceScatter, InPlace::outInsideIn, everybody, ownBlockReduced},
    {"allToAll", Kind::allToAll, InPlace::none, everybody, transposed},
    {"gather", Kind::gather, InPlace::inInsideOut, rootOnly, blockOfEach},
    {"scatter", Kind::scatter, InPlace::outInsideIn, everybody, ownBlockOfRoot},
    {"scan", Kind::scan, InPlace::same, everybody, scanned<Kind::scan>},
    {"exscan", Kind::exscan, InPlace::same, everybody, scanned<Kind::exscan>},
    {"barrier", Kind::barrier, InPlace::none, nobody, reduced},
    {"sendReceive", std::nullopt, InPlace::none, everybody, blockOfPrevious, kRing},
    {"allToAllV", std::nullopt, InPlace::none, everybody, transposed, kParts},
    {"hypercube", std::nullopt, InPlace::inInsideOut, everybody, blockOfEach, kCube},
};
static_assert(std::size(kRecords) == kCollectiveCount + 3);

}  // namespace

Shape CollectiveRecord::shape(std::size_t count, DType dtype, ReduceOp op, int root) const {
  Shape shape{kind.value_or(Kind::barrier), dtype, ReduceOp::sum, 0, count};
  if (hasOp(shape.kind)) shape.op = op;
  if (hasRoot(shape.kind)) shape.root = root;
  return shape;
}

Segment CollectiveRecord::segment(int rank, std::size_t block, const Shape& shape, int root,
                                  int n) const {
  if (made.segment != nullptr) return made.segment(rank, block, shape.count, shape.dtype, n);
  const BlockOrigin from = origin(rank, block, root, n);
  return {block * shape.count, from.block * shape.count, shape.count, from};
}

const CollectiveRecord& recordOf(Kind kind) { return kRecords[static_cast<std::size_t>(kind)]; }

const CollectiveRecord& ringRecord() { return kRecords[kCollectiveCount]; }

const CollectiveRecord& recordNamed(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kRecords), std::end(kRecords),
                                         [&](const auto& record) { return record.name == name; });
  if (found != std::end(kRecords)) return *found;
  throw misuse("timeCollective", "no collective is called " + std::string(name));
}

void runRecord(const CollectiveRecord& record, Communicator& comm, const Shape& shape,
               const Buffers& buffers, const CallOptions& options) {
  if (record.kind) return comm.collective(shape, buffers, options);
  record.made.run(comm, shape, buffers, options);
}

}  // namespace gradlink::measure

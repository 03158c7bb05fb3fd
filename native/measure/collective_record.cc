#include "measure/collective_record.h"

namespace gradlink::measure {
namespace {

std::size_t oneBlock(int) { return 1; }
std::size_t allBlocks(int n) { return static_cast<std::size_t>(n); }
std::size_t noBlocks(int) { return 0; }

double one(int) { return 1; }
double all(int n) { return n; }
double none(int) { return 0; }
// A ring moves every byte of a reduction n - 1 times in, and n - 1 times out, of n ranks.
double twiceTheOthers(int n) { return 2.0 * (n - 1) / n; }
double theOthers(int n) { return (n - 1.0) / n; }

bool everybody(int, int) { return true; }
bool nobody(int, int) { return false; }
bool rootOnly(int rank, int root) { return rank == root; }

BlockOrigin reduced(int, std::size_t block, int) { return {true, 0, block}; }
BlockOrigin rootsBlock(int, std::size_t block, int root) { return {false, root, block}; }
BlockOrigin blockOfEach(int, std::size_t block, int) { return {false, static_cast<int>(block), 0}; }
BlockOrigin ownBlockReduced(int rank, std::size_t, int) {
  return {true, 0, static_cast<std::size_t>(rank)};
}
BlockOrigin transposed(int rank, std::size_t block, int) {
  return {false, static_cast<int>(block), static_cast<std::size_t>(rank)};
}
BlockOrigin ownBlockOfRoot(int rank, std::size_t, int root) {
  return {false, root, static_cast<std::size_t>(rank)};
}

using Arguments = CollectiveArguments;

constexpr CollectiveRecord kRecords[kCollectiveCount] = {
    {.name = "allReduce",
     .inPlace = InPlace::same,
     .reduces = true,
     .rooted = false,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .sizeBlocks = one,
     .busFactor = twiceTheOthers,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allReduce(buffers, a.count, a.dtype, a.op, a.options); },
     .receives = everybody,
     .origin = reduced},
    {.name = "reduce",
     .inPlace = InPlace::same,
     .reduces = true,
     .rooted = true,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .sizeBlocks = one,
     .busFactor = one,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.reduce(buffers, a.count, a.dtype, a.op, a.root, a.options);
         },
     .receives = rootOnly,
     .origin = reduced},
    {.name = "broadcast",
     .inPlace = InPlace::same,
     .reduces = false,
     .rooted = true,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .sizeBlocks = one,
     .busFactor = one,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.broadcast(buffers, a.count, a.dtype, a.root, a.options);
         },
     .receives = everybody,
     .origin = rootsBlock},
    {.name = "allGather",
     .inPlace = InPlace::inInsideOut,
     .reduces = false,
     .rooted = false,
     .inputBlocks = oneBlock,
     .outputBlocks = allBlocks,
     .sizeBlocks = all,
     .busFactor = theOthers,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allGather(buffers, a.count, a.dtype, a.options); },
     .receives = everybody,
     .origin = blockOfEach},
    {.name = "reduceScatter",
     .inPlace = InPlace::outInsideIn,
     .reduces = true,
     .rooted = false,
     .inputBlocks = allBlocks,
     .outputBlocks = oneBlock,
     .sizeBlocks = all,
     .busFactor = theOthers,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.reduceScatter(buffers, a.count, a.dtype, a.op, a.options);
         },
     .receives = everybody,
     .origin = ownBlockReduced},
    {.name = "allToAll",
     .inPlace = InPlace::none,
     .reduces = false,
     .rooted = false,
     .inputBlocks = allBlocks,
     .outputBlocks = allBlocks,
     .sizeBlocks = all,
     .busFactor = theOthers,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allToAll(buffers, a.count, a.dtype, a.options); },
     .receives = everybody,
     .origin = transposed},
    {.name = "gather",
     .inPlace = InPlace::inInsideOut,
     .reduces = false,
     .rooted = true,
     .inputBlocks = oneBlock,
     .outputBlocks = allBlocks,
     .sizeBlocks = all,
     .busFactor = theOthers,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.gather(buffers, a.count, a.dtype, a.root, a.options); },
     .receives = rootOnly,
     .origin = blockOfEach},
    {.name = "scatter",
     .inPlace = InPlace::outInsideIn,
     .reduces = false,
     .rooted = true,
     .inputBlocks = allBlocks,
     .outputBlocks = oneBlock,
     .sizeBlocks = all,
     .busFactor = theOthers,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.scatter(buffers, a.count, a.dtype, a.root, a.options); },
     .receives = everybody,
     .origin = ownBlockOfRoot},
    {.name = "barrier",
     .inPlace = InPlace::none,
     .reduces = false,
     .rooted = false,
     .inputBlocks = noBlocks,
     .outputBlocks = noBlocks,
     .sizeBlocks = none,
     .busFactor = none,
     .run = [](Communicator& comm, const Buffers&, const Arguments& a) { comm.barrier(a.options); },
     .receives = nobody,
     .origin = reduced},
};

}  // namespace

const CollectiveRecord& recordOf(Collective collective) {
  return kRecords[static_cast<int>(collective)];
}

}  // namespace gradlink::measure

#include "measure/collective_record.h"

#include <cstring>

namespace gradlink::measure {
namespace {

std::size_t oneBlock(int) { return 1; }
std::size_t allBlocks(int n) { return static_cast<std::size_t>(n); }
std::size_t noBlocks(int) { return 0; }

bool everybody(int, int) { return true; }
bool nobody(int, int) { return false; }
bool rootOnly(int rank, int root) { return rank == root; }

BlockOrigin reduced(int, std::size_t block, int, int) { return {true, 0, block}; }
BlockOrigin rootsBlock(int, std::size_t block, int root, int) { return {false, root, block}; }
BlockOrigin blockOfEach(int, std::size_t block, int, int) {
  return {false, static_cast<int>(block), 0};
}
BlockOrigin ownBlockReduced(int rank, std::size_t, int, int) {
  return {true, 0, static_cast<std::size_t>(rank)};
}
BlockOrigin transposed(int rank, std::size_t block, int, int) {
  return {false, static_cast<int>(block), static_cast<std::size_t>(rank)};
}
BlockOrigin ownBlockOfRoot(int rank, std::size_t, int root, int) {
  return {false, root, static_cast<std::size_t>(rank)};
}

BlockOrigin blockOfPrevious(int rank, std::size_t, int, int n) {
  return {false, (rank + n - 1) % n, 0};
}

using Arguments = CollectiveArguments;

void passRound(Communicator& comm, const Buffers& buffers, const Arguments& a) {
  constexpr int kTag = 0;
  const int n = comm.size();
  const int rank = comm.heldRanks()[0];
  // A ring of one needs no message.
  if (n == 1) {
    if (a.count != 0) std::memcpy(buffers.out[0], buffers.in[0], a.count * sizeOf(a.dtype));
    return;
  }
  const auto send = [&] {
    comm.send(buffers.in[0], a.count, a.dtype, (rank + 1) % n, kTag, a.options);
  };
  const auto receive = [&] {
    comm.receive(buffers.out[0], a.count, a.dtype, (rank + n - 1) % n, kTag, a.options);
  };
  // Odd ranks receive first: a send may wait for its receive, and a ring of sends would wait for
  // ever.
  if (rank % 2 != 0) {
    receive();
    send();
  } else {
    send();
    receive();
  }
}

constexpr CollectiveRecord kRecords[kCollectiveCount] = {
    {.name = "allReduce",
     .inPlace = InPlace::same,
     .reduces = true,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allReduce(buffers, a.count, a.dtype, a.op, a.options); },
     .receives = everybody,
     .origin = reduced},
    {.name = "reduce",
     .inPlace = InPlace::same,
     .reduces = true,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.reduce(buffers, a.count, a.dtype, a.op, a.root, a.options);
         },
     .receives = rootOnly,
     .origin = reduced},
    {.name = "broadcast",
     .inPlace = InPlace::same,
     .reduces = false,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.broadcast(buffers, a.count, a.dtype, a.root, a.options);
         },
     .receives = everybody,
     .origin = rootsBlock},
    {.name = "allGather",
     .inPlace = InPlace::inInsideOut,
     .reduces = false,
     .inputBlocks = oneBlock,
     .outputBlocks = allBlocks,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allGather(buffers, a.count, a.dtype, a.options); },
     .receives = everybody,
     .origin = blockOfEach},
    {.name = "reduceScatter",
     .inPlace = InPlace::outInsideIn,
     .reduces = true,
     .inputBlocks = allBlocks,
     .outputBlocks = oneBlock,
     .run =
         [](Communicator& comm, const Buffers& buffers, const Arguments& a) {
           comm.reduceScatter(buffers, a.count, a.dtype, a.op, a.options);
         },
     .receives = everybody,
     .origin = ownBlockReduced},
    {.name = "allToAll",
     .inPlace = InPlace::none,
     .reduces = false,
     .inputBlocks = allBlocks,
     .outputBlocks = allBlocks,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.allToAll(buffers, a.count, a.dtype, a.options); },
     .receives = everybody,
     .origin = transposed},
    {.name = "gather",
     .inPlace = InPlace::inInsideOut,
     .reduces = false,
     .inputBlocks = oneBlock,
     .outputBlocks = allBlocks,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.gather(buffers, a.count, a.dtype, a.root, a.options); },
     .receives = rootOnly,
     .origin = blockOfEach},
    {.name = "scatter",
     .inPlace = InPlace::outInsideIn,
     .reduces = false,
     .inputBlocks = allBlocks,
     .outputBlocks = oneBlock,
     .run = [](Communicator& comm, const Buffers& buffers,
               const Arguments& a) { comm.scatter(buffers, a.count, a.dtype, a.root, a.options); },
     .receives = everybody,
     .origin = ownBlockOfRoot},
    {.name = "barrier",
     .inPlace = InPlace::none,
     .reduces = false,
     .inputBlocks = noBlocks,
     .outputBlocks = noBlocks,
     .run = [](Communicator& comm, const Buffers&, const Arguments& a) { comm.barrier(a.options); },
     .receives = nobody,
     .origin = reduced},
    {.name = "sendReceive",
     .inPlace = InPlace::none,
     .reduces = false,
     .inputBlocks = oneBlock,
     .outputBlocks = oneBlock,
     .run = passRound,
     .receives = everybody,
     .origin = blockOfPrevious},
};

}  // namespace

const CollectiveRecord& recordOf(Collective collective) {
  return kRecords[static_cast<int>(collective)];
}

}  // namespace gradlink::measure

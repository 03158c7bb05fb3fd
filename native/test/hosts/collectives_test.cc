// What ranks of several hosts compute together.
#include <utility>

#include "core/hosts/rank_names.h"
#include "test/hosts/support.h"
#include "test/wire_support.h"

namespace gradlink::test {
namespace {

// Equal hosts, unequal ones, ranks dealt out in turn, leaders that are not the first ranks.
const Layout kLayouts[] = {{0, 0, 1, 1},          {0, 1, 1},    {5, 5, 5, 2}, {0, 1, 0, 1},
                           {0, 0, 0, 1, 1, 2, 2}, {0, 1, 2, 0}, {3, 3},       {0, 1}};

std::string nameOf(const Layout& layout) {
  std::string text;
  for (const int node : layout) text += std::to_string(node);
  return text;
}

class Hosts : public testing::TestWithParam<std::tuple<Op, Layout>> {};

TEST_P(Hosts, GiveTheSameAsAPlainLoop) {
  const auto& [op, layout] = GetParam();
  const int size = static_cast<int>(layout.size());
  // 24 and 25 floats: what does and does not travel with the announcement. The longest go in many
  // pieces, of seven ranks in fewer.
  std::vector<Case> cases =
      everyLength(op, size, {0, 1, 7, 24, 25, 4099, size <= 4 ? 300001u : 100001u});
  for (const Case& c : everyType(op, size, 12)) cases.push_back(c);
  for (const Case& c : everyType(op, size, 145)) cases.push_back(c);
  expectNone(onHosts(layout, [&](Communicator& comm, int) {
    for (const Case& c : toTheBit(cases, layout)) EXPECT_EQ(runRank(comm, c), "");
  }));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Hosts,
                         testing::Combine(testing::ValuesIn(kAllOps), testing::ValuesIn(kLayouts)),
                         [](const auto& info) {
                           return std::string(test::nameOf(std::get<0>(info.param))) + "On" +
                                  nameOf(std::get<1>(info.param));
                         });

TEST(HostsTogether, TakeManyPiecesInPlaceAndForEveryRoot) {
  const Layout layout = {0, 1, 1, 0, 1};
  expectNone(onHosts(layout, [&](Communicator& comm, int) {
    const auto right = [&](Op op, int root, bool inPlace) {
      EXPECT_EQ(runRank(comm, {op, 5, 550001, DType::float32, ReduceOp::sum, root, inPlace}), "");
    };
    for (const Op op : {Op::reduce, Op::broadcast}) {
      for (int root = 0; root < 5; ++root) right(op, root, root != 2);
    }
    for (const Op op : {Op::allReduce, Op::reduceScatter}) {
      for (const bool inPlace : {false, true}) right(op, 0, inPlace);
    }
    EXPECT_EQ(runRank(comm, {Op::allReduce, 5, 550001, DType::float32, ReduceOp::avg}), "");
  }));
}

// bfloat16 has float32's range, which its partial sums must not leave where the result does not.
TEST(HostsTogether, SumsOfTheLargestHalvesAreWhatOneHostGives) {
  expectNone(onHosts({0, 0, 1, 1}, [&](Communicator& comm, int rank) {
    for (const auto& [dtype, large] :
         {std::pair(DType::float16, 0x7bff), {DType::bfloat16, 0x7f7f}}) {
      for (const std::size_t count : {1, 1000, 300'001}) {
        const auto value = [&](int bits) { return std::vector(4 * count, std::uint16_t(bits)); };
        const auto expect = [&](int from, ReduceOp op, int want) {
          const auto in = value(from);
          const void* const inputs[] = {in.data()};
          for (const bool scatter : {false, true}) {
            std::vector<std::uint16_t> out(scatter ? count : 4 * count);
            void* const outputs[] = {out.data()};
            if (scatter) {
              comm.reduceScatter({inputs, outputs}, count, dtype, op);
            } else {
              comm.allReduce({inputs, outputs}, 4 * count, dtype, op);
            }
            EXPECT_EQ(out, std::vector(out.size(), std::uint16_t(want)));
          }
        };
        expect(large, ReduceOp::avg, large);
        expect(rank < 2 ? large : large | 0x8000, ReduceOp::sum, 0);
      }
    }
  }));
}

TEST(HostsTogether, BarriersOrderWhatCameBefore) {
  std::atomic<int> before{0};
  expectNone(onHosts({0, 0, 1, 1}, [&](Communicator& comm, int) {
    for (int round = 1; round <= 100; ++round) {
      before.fetch_add(1);
      comm.barrier();
      EXPECT_GE(before.load(), 4 * round);
      comm.barrier();
    }
  }));
}

TEST(HostsTogether, SendAndReceiveAcrossAndInside) {
  expectNone(onHosts({0, 0, 1}, [](Communicator& comm, int rank) {
    if (rank != 0) return comm.send(&rank, 1, DType::int32, 0, 7);
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      int value = 0;
      const Received got = comm.receive(&value, 1, DType::int32, kAnySource, 7);
      EXPECT_EQ(got.source, value);
      sum += value;
    }
    EXPECT_EQ(sum, 3);
  }));
}

TEST(HostsTogether, SplitIntoWhatSpansHostsAndWhatDoesNot) {
  const Layout layout = {0, 0, 1, 1, 1};
  const auto sumOf = [](Communicator& comm) {
    int sum = 1;
    const void* const in[] = {&sum};
    void* const out[] = {&sum};
    comm.allReduce({in, out}, 1, DType::int32, ReduceOp::sum);
    return sum;
  };
  expectNone(onHosts(layout, [&](Communicator& comm, int rank) {
    // Both hosts, in the opposite order of ranks.
    auto mixed = comm.split(rank % 2, -rank);
    const int members = rank % 2 == 0 ? 3 : 2;
    EXPECT_EQ(mixed->size(), members);
    EXPECT_EQ(mixed->heldRanks()[0], (members - 1) - rank / 2);
    EXPECT_EQ(sumOf(*mixed), members);
    EXPECT_EQ(runRank(*mixed, {Op::allGather, members, 300, DType::float32}), "");
    // One host each, and one rank that takes no part.
    auto host = comm.split(rank == 4 ? -1 : layout[static_cast<std::size_t>(rank)], 0);
    EXPECT_EQ(host == nullptr, rank == 4);
    if (host) {
      EXPECT_EQ(sumOf(*host), 2);
    }
    EXPECT_EQ(sumOf(comm), 5);
  }));
}

TEST(HostsTogether, ShareMemoryInsideAHost) {
  expectNone(onHosts({0, 0, 1, 1}, [](Communicator& comm, int) {
    const auto allocate = [&](std::size_t bytes) {
      return static_cast<std::byte*>(comm.allocShared(std::max<std::size_t>(bytes, 1)));
    };
    EXPECT_EQ(runRank(comm, {Op::allReduce, 4, 500000, DType::float32}, allocate), "");
  }));
}

TEST(HostsTogether, WiresCarryMessagesInsideAndAcrossAndTellOnceWhoIsGone) {
  expectNone(onHosts({0, 1, 0, 1, 1}, [](Communicator& comm, int rank) {
    auto wire = comm.openWire();
    EXPECT_EQ(wire->rank(), rank);
    EXPECT_EQ(exchange(*wire, 300), "");
    std::vector<std::uint64_t> sent = wire->bytesSent();
    for (const std::uint64_t bytes : sent) EXPECT_GT(bytes, 0u) << rank;
    sendText(*wire, rank, "own");
    sent[static_cast<std::size_t>(rank)] += 3;
    EXPECT_EQ(wire->bytesSent(), sent) << rank;
    comm.barrier();
    if (rank == 3) wire->close(Deadline::in(20000));
    if (rank == 4) wire.reset();
    WireEvents events;
    const auto heard = [&] { return !events.left.empty() && !events.lost.empty(); };
    EXPECT_TRUE(rank >= 3 || pollUntil(*wire, events, heard));
    comm.barrier();
    if (rank < 3) {
      wire->poll(events, Deadline::in(0));
      EXPECT_EQ(events.left, std::vector<int>{3});
      EXPECT_EQ(events.lost, std::vector<int>{4});
    }
    comm.barrier();
    if (rank < 3) wire->close(Deadline::in(20000));
  }));
}

TEST(HostsTogether, ReportAMismatchOnAllSidesAndGoOn) {
  // Once inside a host, once between hosts, once both.
  const std::vector<std::vector<std::size_t>> counts = {
      {40, 40, 40, 41}, {40, 40, 41, 41}, {40, 41, 42, 40}};
  const int odd[] = {3, 2, 1};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    expectNone(onHosts({0, 0, 1, 1}, [&](Communicator& comm, int rank) {
      std::vector<float> data(64, 1);
      const std::string name = "own " + std::to_string(rank);
      const auto error = errorOf([&] {
        sumFloats(comm, data.data(), counts[i][static_cast<std::size_t>(rank)],
                  {.name = name.c_str()});
      });
      ASSERT_TRUE(error) << "rank " << rank << " noticed nothing";
      const std::string text = error->what();
      EXPECT_EQ(error->code, ErrorCode::mismatch) << text;
      EXPECT_EQ(error->rank, odd[i]) << text;
      EXPECT_TRUE(error->usable);
      for (int r = 0; r < 4; ++r)
        EXPECT_NE(text.find("'own " + std::to_string(r) + "'"), std::string::npos) << text;
      for (const std::size_t count : counts[i])
        EXPECT_NE(text.find("count " + std::to_string(count)), std::string::npos) << text;
      EXPECT_EQ(runRank(comm, {Op::allReduce, 4, 40, DType::float32}), "");
    }));
  }
}

TEST(HostsTogether, NameTheLateRankOnEveryHost) {
  const auto errors = onHosts(
      {0, 0, 1, 1},
      [](Communicator& comm, int rank) {
        // The short time begins when all are there.
        comm.barrier({.timeoutMs = 20000});
        if (rank == 3) {
          // Says nothing until the others have given up.
          for (;;) comm.check("check"), std::this_thread::yield();
        }
        comm.barrier();
      },
      300);
  expectAll({errors.begin(), errors.end() - 1}, ErrorCode::timeout, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const char* const text = errors[static_cast<std::size_t>(rank)]->what();
    EXPECT_EQ(lacking(text, {"rank 3"}), "") << text;
  }
}

TEST(HostsTogether, AbortEverywhere) {
  // A leader, and one that leads nobody.
  for (const int from : {2, 3}) {
    const auto errors = onHosts({0, 0, 1, 1}, [from](Communicator& comm, int rank) {
      comm.barrier();
      if (rank == from) comm.abort("enough");
      for (;;) comm.barrier();
    });
    expectAll(errors, ErrorCode::aborted, from);
    for (const auto& error : errors) {
      EXPECT_EQ(lacking(error->what(), {"rank " + std::to_string(from), "enough"}), "");
    }
  }
}

TEST(RankNames, RenameNumbersThatAreRanks) {
  const auto name = [](int rank) { return rank + 10; };
  EXPECT_EQ(
      renameRanks("rank 1 called allReduce(count 2, float32); ranks 0, 2 called barrier", name),
      "rank 11 called allReduce(count 2, float32); ranks 10, 12 called barrier");
  EXPECT_EQ(renameRanks("awaits ranks 1, 2 and 3 there", name), "awaits ranks 11, 12 and 13 there");
  EXPECT_EQ(renameRanks("franks 1, rank x, rank", name), "franks 1, rank x, rank");
  const auto list = [](const std::vector<int>& ranks) {
    std::string text = "<";
    for (const int rank : ranks) text += std::to_string(rank) + ">";
    return text;
  };
  EXPECT_EQ(rewriteRanks("rank 1 awaits ranks 0, 2 and 13, franks 1", list),
            "<1> awaits <0>2>13>, franks 1");
}

}  // namespace
}  // namespace gradlink::test

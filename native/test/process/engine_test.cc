// What ranks that are processes compute together.
#include "test/process/support.h"

namespace gradlink::test {
namespace {

class Processes : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(Processes, GiveTheSameAsAPlainLoop) {
  const auto [op, size] = GetParam();
  // 8 and 9 floats: what does and does not lie beside the announcement itself.
  std::vector<std::size_t> lengths{0, 1, 8, 9, 100, 4099, 40001};
  // Of seven ranks a call moves up to seven times as much.
  if (size <= 4) lengths.push_back(150001);
  std::vector<Case> cases = everyLength(op, size, lengths);
  for (const Case& c : everyType(op, size, 45)) cases.push_back(c);
  if (size <= 4) {
    for (const Case& c : everyType(op, size, 20011)) cases.push_back(c);
  }
  expectNone(onRanks(size, [&](Communicator& comm, int) { return runAll(comm, toTheBit(cases)); }));
}

TEST_P(Processes, PassThroughManyTinySlots) {
  const auto [op, size] = GetParam();
  const std::vector<Case> cases = everyLength(op, size, {16385, 33333});
  expectNone(onRanks(
      size, [&](Communicator& comm, int) { return runAll(comm, toTheBit(cases)); }, 1024));
}

TEST_P(Processes, WorkOnSharedArraysInPlace) {
  const auto [op, size] = GetParam();
  const std::vector<Case> cases = everyLength(op, size, {1, 40001, size <= 4 ? 150001u : 70001u});
  expectNone(onRanks(size, [&](Communicator& comm, int) -> std::string {
    for (const Case& c : toTheBit(cases)) {
      std::vector<void*> memory;
      const auto wrong = runRank(comm, c, [&](std::size_t bytes) {
        memory.push_back(comm.allocShared(bytes));
        return static_cast<std::byte*>(memory.back());
      });
      if (!wrong.empty()) return wrong;
      for (void* m : memory) comm.freeShared(m);
    }
    return {};
  }));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Processes,
                         testing::Combine(testing::ValuesIn(kAllOps), testing::Values(2, 3, 4, 7)),
                         kNameOfCase);

TEST(ProcessesTogether, MixSmallLargeSharedAndPlainCalls) {
  expectNone(onRanks(
      3,
      [](Communicator& comm, int) -> std::string {
        auto* shared = static_cast<std::byte*>(comm.allocShared(4 << 20));
        for (std::size_t i = 0; i < 150; ++i) {
          const Op op = kAllOps[i % std::size(kAllOps)];
          const Case c{op, 3, (i * 977) % 20000, DType::float32};
          std::size_t used = 0;
          auto take = [&](std::size_t bytes) {
            std::byte* at = shared + used;
            used += (bytes + 63) / 64 * 64;
            return at;
          };
          const auto wrong = i % 2 == 0 ? runRank(comm, c) : runRank(comm, c, take);
          if (!wrong.empty()) return wrong;
          if (i % 5 == 0) comm.barrier();
        }
        return {};
      },
      4096));
}

// Once the rings are warm, calls try every way in turn: with the announcement, in few chunks and in
// more than are tried. Each has had its turn after a dozen calls. Two ranks know one way more for
// one operation.
TEST(ProcessesTogether, GiveTheSameWhileTheyLearnTheBestWay) {
  const auto learn = [](Communicator& comm, std::span<const Op> ops) -> std::string {
    for (const Op op : ops) {
      for (const std::size_t count : {1023, 7001, 20011}) {
        const std::vector<Case> cases(16, Case{op, comm.size(), count});
        if (std::string wrong = runAll(comm, cases); !wrong.empty()) return wrong;
      }
    }
    return {};
  };
  expectNone(onRanks(
      3, [&](Communicator& comm, int) { return learn(comm, kAllOps); }, 8192));
  expectNone(onRanks(
      2,
      [&](Communicator& comm, int) {
        return learn(comm, {kAllOps, 1});
      },
      8192));
}

TEST(ProcessesTogether, MessagesKeepOrderShortAndLong) {
  // The long ones outgrow the ring that they flow through, so that a sender waits for the receiver.
  constexpr std::size_t kLong = 100000;
  expectNone(onRanks(3, [](Communicator& comm, int rank) -> std::string {
    for (int i = 0; i < 200; ++i) {
      std::vector<int> data(i % 5 == 0 ? kLong : static_cast<std::size_t>(i % 50), i);
      if (rank < 2) {
        comm.send(data.data(), data.size(), DType::int32, 2, rank);
        continue;
      }
      for (int source : {1, 0}) {
        std::vector<int> got(kLong, -1);
        const Received received =
            comm.receive(got.data(), got.size(), DType::int32, source, source);
        if (received.count != data.size() || !std::equal(data.begin(), data.end(), got.begin())) {
          return "message " + std::to_string(i) + " is wrong";
        }
      }
    }
    return {};
  }));
}

TEST(SlowProcesses, ReduceMoreThanTwoGiBPerRank) {
  const std::size_t count = (std::size_t{1} << 31) + 4097;
  expectNone(onRanks(2, [&](Communicator& comm, int rank) -> std::string {
    std::vector<std::int8_t> data(count, static_cast<std::int8_t>(rank + 1));
    data[count - 1] = 5;
    const void* in[] = {data.data()};
    void* out[] = {data.data()};
    comm.allReduce({in, out}, count, DType::int8, ReduceOp::sum, {.timeoutMs = 200000});
    if (data[count - 1] != 10 || data[std::size_t{1} << 31] != 3) return "the end is wrong";
    return std::all_of(data.begin(), data.end() - 1, [](auto v) { return v == 3; }) ? "" : "wrong";
  }));
}

}  // namespace
}  // namespace gradlink::test

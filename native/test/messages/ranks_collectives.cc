// What ranks compute together.
#include <numeric>
#include <thread>

#include "test/messages/ranks.h"
#include "test/shm/support.h"

namespace gradlink::test {
namespace {

// "collectives short", "long" or "types": in the announcement or a few stages, in more than are on
// the way at once, all types in several stages.
const Register kCollectives("collectives", [](const auto& arguments) -> std::string {
  const std::string& which = arguments.at(0);
  auto comm = joinAll();
  for (Op op : kAllOps) {
    std::vector<Case> cases;
    if (which == "short") {
      cases = everyLength(op, comm->size(), {0, 1, 9, 100, 4099, 40001});
      for (const Case& c : everyType(op, comm->size(), 45)) cases.push_back(c);
    } else if (which == "long") {
      cases = everyLength(op, comm->size(), {1500001});
    } else {
      cases = everyType(op, comm->size(), 20011);
    }
    if (std::string wrong = runAll(*comm, toTheBit(cases)); !wrong.empty()) return wrong;
    comm->barrier();
  }
  comm->close();
  return {};
});

const Register kMismatch("mismatch", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int last = comm->size() - 1;
  const int me = comm->heldRanks()[0];
  for (std::size_t count : {10u, 500000u}) {
    std::vector<float> data(count + 1, 1);
    std::vector<float> result(count + 1);
    const void* in[] = {data.data()};
    void* out[] = {result.data()};
    std::string wrong = expectError(
        ErrorCode::mismatch, last, true,
        [&] {
          comm->allReduce({in, out}, me == last ? count + 1 : count, DType::float32, ReduceOp::sum,
                          {.name = me == last ? "odd" : "even"});
        },
        "sum) as 'even'; rank " + std::to_string(last) + " called allReduce(count " +
            std::to_string(count + 1) + ", float32, sum) as 'odd'");
    if (!wrong.empty()) return wrong;
    comm->allReduce({in, out}, count, DType::float32, ReduceOp::sum);
    if (result[0] != static_cast<float>(comm->size())) return "wrong sum after the mismatch";
  }
  return expectError(
      ErrorCode::mismatch, last, true,
      [&] {
        if (me == last) {
          comm->openWire();
        } else {
          comm->nodes();
        }
      },
      "called openWire");
});

const Register kSplit("split", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  auto part = messages::splitMpi(*comm, me == 0 ? -1 : me % 2, -me);
  if ((part == nullptr) != (me == 0)) return "color -1 takes no part, and nobody else does";
  if (!part) return {};
  std::vector<int> world;
  for (int r = comm->size() - 1; r > 0; --r) {
    if (r % 2 == me % 2) world.push_back(r);
  }
  if (part->worldRanks() != world) return "the ranks of a part are not in the order of their keys";
  return runRank(*part, {Op::allGather, part->size(), 30000});
});

// Each is freed when all have closed it: MPIs have some 2000 at the most at a time.
const Register kMany("many", [](const auto& arguments) -> std::string {
  auto comm = joinAll();
  const int rounds = std::stoi(arguments.at(0));
  for (int i = 0; i < rounds; ++i) {
    auto part = comm->split(0, 0);
    // Left behind in it: no later communicator may find this.
    if (comm->heldRanks()[0] == 0) part->send(&i, 1, DType::int32, 1, 5);
    part->barrier();
    part->close();
  }
  auto part = comm->split(0, 0);
  const int value = -1;
  int got = 0;
  if (comm->heldRanks()[0] == 0) part->send(&value, 1, DType::int32, 1, 5);
  if (comm->heldRanks()[0] == 1) {
    part->receive(&got, 1, DType::int32, 0, 5);
    if (got != value) return "a message of a closed communicator came: " + std::to_string(got);
  }
  part->barrier();
  return {};
});

const Register kThreads("threads", [](const auto&) -> std::string {
  constexpr int kThreadCount = 3;
  std::vector<std::string> wrong(kThreadCount);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreadCount; ++t) {
    threads.emplace_back([&, t] {
      const auto error = errorOf([&] {
        auto comm = joinAll("of thread " + std::to_string(t));
        for (std::size_t i = 0; i < 60 && wrong[t].empty(); ++i) {
          const Op op = kAllOps[i % std::size(kAllOps)];
          wrong[t] = runRank(*comm, {op, comm->size(), (i * 977) % 40000});
        }
        auto wire = comm->openWire();
        comm->close();
      });
      if (error) wrong[t] = error->what();
    });
  }
  for (auto& thread : threads) thread.join();
  return std::accumulate(wrong.begin(), wrong.end(), std::string());
});

const Register kLarge("large", [](const auto&) -> std::string {
  auto comm = joinAll("large", 300000);
  // Parts of more than one message's most, indices of more than 31 bits.
  const std::size_t count = (std::size_t{1} << 31) + 4097;
  std::vector<std::int8_t> data(count, static_cast<std::int8_t>(comm->heldRanks()[0] + 1));
  data[count - 1] = 5;
  const void* in[] = {data.data()};
  void* out[] = {data.data()};
  comm->allReduce({in, out}, count, DType::int8, ReduceOp::sum);
  if (data[count - 1] != 10 || data[std::size_t{1} << 31] != 3) return "the end is wrong";
  const bool right = std::all_of(data.begin(), data.end() - 1, [](auto v) { return v == 3; });
  if (!right) return "wrong";
  // One message of more than MPI counts.
  if (comm->heldRanks()[0] == 0) {
    comm->send(data.data(), count, DType::int8, 1, 0);
    return {};
  }
  std::fill(data.begin(), data.end(), std::int8_t{0});
  const Received got = comm->receive(data.data(), count, DType::int8, 0, 0);
  return got.count == count && data[count - 1] == 10 && data[0] == 3 ? "" : "wrong message";
});

}  // namespace
}  // namespace gradlink::test

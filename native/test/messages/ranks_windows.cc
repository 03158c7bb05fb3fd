// Windows and messages to neighbours between the ranks of an MPI job.
#include <cstring>
#include <vector>

#include "core/neighbors.h"
#include "test/messages/ranks.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

using Body = std::string (*)(Communicator&, const OpenWindow&);

const Register kWindows("windows", [](const auto&) -> std::string {
  auto comm = joinAll();
  const OpenWindow open = [&](const WindowSpec& spec) { return comm->openWindow(spec); };
  for (const Body body : {windowsMoveEveryType, windowsKeepTheSum, windowsLock}) {
    if (std::string wrong = body(*comm, open); !wrong.empty()) return wrong;
  }
  if (comm->size() > 1) {
    std::string wrong = windowsNeedNothingOfTheTarget(*comm, open);
    if (!wrong.empty()) return wrong;
  }
  comm->close();
  return {};
});

// A window that is still there when its communicator, and then the process, ends.
const Register kWindowsLeft("windows-left", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  const int size = comm->size();
  const auto initial = filled(5, DType::float32, 1);
  const auto window = comm->openWindow(exponential(me, size, 5, DType::float32, initial.data()));
  comm->barrier();
  if (me == size - 1) {
    comm->close();
    return expectError(ErrorCode::closed, -1, false, [&] {
      window->put(window->data(), all({0}), 1, false, false, Deadline::in(20000));
    });
  }
  const std::vector<Neighbor> last = all({size - 1});
  if (me + 1 != size - 1) return {};
  const Deadline deadline = Deadline::in(20000);
  return expectError(ErrorCode::peerLost, size - 1, true, [&] {
    while (!deadline.passed()) window->put(window->data(), last, 1, false, false, deadline);
  });
});

const Register kWindowsMismatch("windows-mismatch", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  const auto initial = filled(8, DType::float32, 1);
  WindowSpec spec = exponential(me, comm->size(), 8, DType::float32, initial.data());
  WindowSpec other = spec;
  if (me == 1) other.sources.pop_back();
  std::string wrong = expectError(ErrorCode::mismatch, 1, true, [&] { comm->openWindow(other); },
                                  {"rank 2", "rank 1", "source"});
  if (!wrong.empty()) return wrong;
  comm->openWindow(spec)->free({});
  comm->close();
  return {};
});

// Of everything that neighbours exchange: to each destination as many elements as the rank's
// number.
const Register kNeighborGather("neighbor-gather", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  const int size = comm->size();
  for (const DType dtype : {DType::int32, DType::float16, DType::float32, DType::float64}) {
    for (const std::size_t unit : {std::size_t{1}, std::size_t{30'011}}) {
      const auto countOf = [&](int rank) { return unit * static_cast<std::size_t>(rank); };
      const WindowSpec graph = exponential(me, size, 0, dtype, nullptr);
      std::vector<NeighborBlock> sources;
      std::size_t total = 0;
      for (const int source : graph.sources) {
        sources.push_back({source, countOf(source)});
        total += countOf(source);
      }
      const auto in = filled(countOf(me), dtype, me + 1);
      auto out = filled(total, dtype, 0);
      comm->neighborAllGather(in.data(), countOf(me), dtype, out.data(), sources,
                              graph.destinations, {});
      const std::uint8_t* at = out.data();
      for (const NeighborBlock& source : sources) {
        std::string wrong = wrongAt(at, source.count, dtype, source.rank + 1);
        if (!wrong.empty()) return wrong;
        at += source.count * sizeOf(dtype);
      }
    }
  }
  if (size == 1) return {};
  // Rank 1 expects one element too many of rank 0: all ranks say the same.
  const char byte = 0;
  char got[2];
  std::vector<NeighborBlock> sources;
  std::vector<int> destinations;
  if (me == 0) destinations.push_back(1);
  if (me == 1) sources.push_back({0, 2});
  std::string wrong = expectError(
      ErrorCode::mismatch, -1, true,
      [&] { comm->neighborAllGather(&byte, 1, DType::int8, got, sources, destinations, {}); },
      {"rank 0", "rank 1", "sends 1", "expects 2"});
  comm->barrier();
  return wrong;
});

}  // namespace
}  // namespace gradlink::test

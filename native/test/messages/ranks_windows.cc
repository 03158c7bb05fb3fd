// Windows and messages to neighbours between the ranks of an MPI job.
#include "core/neighbors.h"
#include "test/messages/ranks.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

Places placesOf(Communicator& comm) {
  return onTheHost([&](const WindowSpec& spec) { return comm.openWindow(spec); });
}

const Register kWindows("windows", [](const auto&) -> std::string {
  auto comm = joinAll();
  std::string wrong = windowsWork(*comm, placesOf(*comm));
  if (wrong.empty()) comm->close();
  return wrong;
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

const Register kNeighborGather("neighbor-gather", [](const auto&) -> std::string {
  auto comm = joinAll();
  const int me = comm->heldRanks()[0];
  std::string wrong = neighborsGather(*comm, placesOf(*comm));
  if (!wrong.empty() || comm->size() == 1) return wrong;
  // Rank 1 expects one element too many of rank 0: all ranks say the same.
  const char byte = 0;
  char got[2];
  std::vector<NeighborBlock> sources;
  std::vector<int> destinations;
  if (me == 0) destinations.push_back(1);
  if (me == 1) sources.push_back({0, 2});
  wrong = expectError(
      ErrorCode::mismatch, -1, true,
      [&] { comm->neighborAllGather(&byte, 1, DType::int8, got, sources, destinations, {}); },
      {"rank 0", "rank 1", "sends 1", "expects 2"});
  comm->barrier();
  return wrong;
});

}  // namespace
}  // namespace gradlink::test

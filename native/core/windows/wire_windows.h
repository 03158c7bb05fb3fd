// Windows over messages, for ranks that cannot access each other's memory: hosts of an MPI job.
// MPI's one-sided calls do not serve: some move data only while the target is in an MPI call (Open
// MPI over TCP, MPICH over UCX), they cannot add a weight times an array in 16-bit types, and they
// count no versions. A thread of ours works whatever the target's program does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "core/window.h"
#include "core/windows/table.h"

namespace gradlink {

class WindowMemory;
class WindowService;

/// The ranks of a communicator that joins processes; a process may hold several.
struct WindowRanks {
  std::vector<int> held;
  /// For each rank the process that holds it.
  std::vector<int> holders;
  /// Whether all are held here: the communicator then needs no wires.
  bool all = false;
  Exchange exchange;
};

/// The windows of a communicator that has wires and holds one rank. Used from its thread.
class WireWindows {
 public:
  WireWindows();
  ~WireWindows();
  WireWindows(const WireWindows&) = delete;
  WireWindows& operator=(const WireWindows&) = delete;

  using MakeMemory = std::function<std::unique_ptr<WindowMemory>(const WindowSpec&, int size)>;

  /// Collective, as Communicator::openWindow. The first call starts the thread that serves all
  /// windows. `make`: for arrays outside host memory.
  std::unique_ptr<Window> open(Communicator& communicator, const WindowSpec& spec,
                               const CallOptions& options, const MakeMemory& make = {});
  /// The same for all held ranks in one call, freed together: the last free() waits for the others.
  std::vector<std::unique_ptr<Window>> open(Communicator& communicator, const WindowRanks& ranks,
                                            std::span<const WindowSpec> specs,
                                            std::span<const MakeMemory> make,
                                            const CallOptions& options);
  /// Call before the communicator closes: the windows' calls fail from then on. Idempotent.
  void close();

 private:
  std::shared_ptr<WindowService> service_;
  std::uint32_t next_ = 0;
};

}  // namespace gradlink

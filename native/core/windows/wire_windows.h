// Windows over messages, for communicators whose ranks cannot reach into each other's memory: hosts
// of an MPI job. Not MPI's own one-sided calls: an MPI may move their data only while the target is
// in a call of MPI's (Open MPI over TCP and MPICH over UCX do), has no sum of a buffer and a weight
// times an array in 16-bit types, and counts no versions. A thread of ours that takes messages does
// it all whatever the target's program does.
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

/// Ranks whose processes a communicator joins: several of them may be held by one.
struct WindowRanks {
  /// Those held here, ascending.
  std::vector<int> held;
  /// Of each rank the process that holds it.
  std::vector<int> holders;
  /// Whether all are held here: then the communicator need have no wires.
  bool all = false;
  Exchange exchange;
};

/// The windows of one communicator, which has wires and holds one rank. Its calls are the
/// communicator's: from the same thread.
class WireWindows {
 public:
  WireWindows();
  ~WireWindows();
  WireWindows(const WireWindows&) = delete;
  WireWindows& operator=(const WireWindows&) = delete;

  /// Makes a rank's memory for a window of so many ranks.
  using MakeMemory = std::function<std::unique_ptr<WindowMemory>(const WindowSpec&, int size)>;

  /// Collective, as Communicator::openWindow. The first starts the thread that serves all.
  /// `make`: where the arrays are not in the memory of the host.
  std::unique_ptr<Window> open(Communicator& communicator, const WindowSpec& spec,
                               const CallOptions& options, const MakeMemory& make = {});
  /// Likewise of all ranks held here, in one call. They are freed together: the last free() of them
  /// waits for the other processes. `make`: of each.
  std::vector<std::unique_ptr<Window>> open(Communicator& communicator, const WindowRanks& ranks,
                                            std::span<const WindowSpec> specs,
                                            std::span<const MakeMemory> make,
                                            const CallOptions& options);
  /// Before the communicator closes: windows' calls fail from then on. Idempotent.
  void close();

 private:
  std::shared_ptr<WindowService> service_;
  std::uint32_t next_ = 0;
};

}  // namespace gradlink

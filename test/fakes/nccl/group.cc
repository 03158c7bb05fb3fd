#include "nccl/group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "nccl/driver_link.h"
#include "nccl/registrations.h"
#include "support/environment.h"
#include "support/machine.h"

namespace gradlink::fake {
namespace {

struct Pending {
  int depth = 0;
  abi::Result error = abi::kSuccess;
  std::vector<std::shared_ptr<Comm>> joins;
  std::vector<std::unique_ptr<Work>> works;
  std::map<std::shared_ptr<Comm>, std::vector<Comm::Window>> windows;
};
thread_local Pending pending;

struct Counts {
  std::atomic<std::size_t> groups{0};
  std::atomic<std::size_t> collectives[static_cast<std::size_t>(Collective::scatter) + 1] = {};
};
Counts counts;

/// Launches for non-blocking handles, each group on a thread of its own, as the library does:
/// groups of several communicators launch beside one another.
class Launcher {
 public:
  static Launcher& get() {
    static Launcher& launcher = *new Launcher;
    return launcher;
  }
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    threads_.remove_if([](const auto& one) { return one->ended.load(); });
    threads_.push_back(std::make_unique<One>());
    One& one = *threads_.back();
    one.thread = std::thread([&one, task = std::move(task)] {
      task();
      one.ended = true;
    });
  }
  /// Launching waits for nothing, so its end comes soon.
  void settle() {
    const std::lock_guard lock(mutex_);
    threads_.clear();
  }

 private:
  struct One {
    ~One() { thread.join(); }
    std::atomic<bool> ended{false};
    std::thread thread;
  };
  std::mutex mutex_;
  std::list<std::unique_ptr<One>> threads_;
};

/// As a group of its own where there is none around it.
abi::Result within(const std::function<abi::Result()>& body) {
  beginGroup();
  const abi::Result result = body();
  if (result != abi::kSuccess && pending.error == abi::kSuccess) pending.error = result;
  if (pending.depth > 1) {
    --pending.depth;
    return result;
  }
  return endGroup();
}

abi::Result checkReady(const std::shared_ptr<Comm>& comm) {
  if (!comm) return complain(abi::kInvalidArgument, "comm is not a communicator");
  const abi::Result state = comm->state();
  if (state == abi::kSuccess && !comm->aborted()) return abi::kSuccess;
  return complain(abi::kInvalidUsage, state == abi::kInProgress
                                          ? "Attempt to use communicator before the previous "
                                            "operation returned ncclSuccess"
                                          : "the communicator has failed");
}

/// Whether memory is of the communicator's GPU; the whole of it, where `bytes` is not 0.
abi::Result checkMemory(const Comm& comm, const char* name, const void* memory, std::size_t bytes) {
  const DriverLink& driver = *DriverLink::get();
  const char* const first = static_cast<const char*>(memory);
  for (const char* at : {first, first + (bytes > 0 ? bytes - 1 : 0)}) {
    const int owner = memory == nullptr ? -2 : driver.owner(at);
    // Page-locked host memory is as good as the GPU's own.
    if (owner == comm.device || owner == -1) continue;
    return complain(abi::kInvalidArgument,
                    std::string(name) + " is not memory of GPU " + std::to_string(comm.device) +
                        (owner >= 0 ? " but of GPU " + std::to_string(owner) : ""));
  }
  return abi::kSuccess;
}

/// Of a collective's two arrays; simulated ones need not be as long as they say.
abi::Result checkArrays(const Comm& comm, const Entry& entry, bool whole) {
  const std::size_t in = inBytes(entry.step, comm.rank, comm.size);
  const std::size_t out = outBytes(entry.step, comm.rank, comm.size);
  abi::Result result = abi::kSuccess;
  if (in > 0) result = checkMemory(comm, "sendbuff", entry.in, whole ? in : 0);
  if (out > 0 && result == abi::kSuccess) {
    result = checkMemory(comm, "recvbuff", entry.out, whole ? out : 0);
  }
  return result;
}

abi::Result checkWholes(const std::vector<std::unique_ptr<Work>>& works) {
  for (const auto& work : works) {
    for (const Entry& entry : work->collectives) {
      const abi::Result result = checkArrays(*work->comm, entry, true);
      if (result != abi::kSuccess) return result;
    }
  }
  return abi::kSuccess;
}

abi::Result checkStream(const Comm& comm, cuda::StreamHandle stream) {
  if (DriverLink::get()->deviceOf(stream) == comm.device) return abi::kSuccess;
  return complain(abi::kInvalidArgument, "the stream is of another GPU than the communicator");
}

/// The group's work for a communicator; null where it has one on another stream.
Work* workFor(const std::shared_ptr<Comm>& comm, cuda::StreamHandle stream) {
  for (const auto& work : pending.works) {
    if (work->comm != comm) continue;
    return work->stream == stream ? work.get() : nullptr;
  }
  auto work = std::make_unique<Work>();
  work->comm = comm;
  work->stream = stream;
  pending.works.push_back(std::move(work));
  return pending.works.back().get();
}

bool nonBlocking(const Pending& group) {
  return std::any_of(group.joins.begin(), group.joins.end(),
                     [](const auto& comm) { return !comm->blocking; }) ||
         std::any_of(group.works.begin(), group.works.end(),
                     [](const auto& work) { return !work->comm->blocking; }) ||
         std::any_of(group.windows.begin(), group.windows.end(),
                     [](const auto& one) { return !one.first->blocking; });
}

abi::Result fail(Pending& group) {
  for (const auto& comm : group.joins) comm->state(group.error);
  for (const auto& work : group.works) {
    if (!work->comm->blocking) work->comm->state(group.error);
  }
  for (const auto& [comm, windows] : group.windows) {
    if (!comm->blocking) comm->state(group.error);
  }
  return group.error;
}

abi::Result joinAll(const std::vector<std::shared_ptr<Comm>>& comms) {
  for (const auto& comm : comms) comm->joinInBackground();
  abi::Result result = abi::kSuccess;
  for (const auto& comm : comms) {
    comm->settle();
    if (result == abi::kSuccess) result = comm->state();
  }
  return result;
}

void openAll(const Pending& group) {
  for (const auto& [comm, windows] : group.windows) comm->openInBackground(windows);
}

abi::Result waitForWindows(const Pending& group) {
  abi::Result result = abi::kSuccess;
  for (const auto& [comm, windows] : group.windows) {
    comm->settle();
    if (result == abi::kSuccess) result = comm->state();
  }
  return result;
}

/// As if the launches took so long; no longer than until a free has begun between them.
void takeTime() {
  static const double milliseconds = faultNumber("nccl-launches-apart").value_or(0);
  for (int i = 0; i < milliseconds && DriverLink::get()->freeing() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

abi::Result launchAll(std::vector<std::unique_ptr<Work>>& works) {
  abi::Result result = abi::kSuccess;
  for (auto& work : works) {
    if (&work != &works.front()) takeTime();
    const std::shared_ptr<Comm> comm = work->comm;
    if (comm->aborted()) continue;
    const abi::Result one = comm->launch(std::move(work));
    if (result == abi::kSuccess) result = one;
  }
  return result;
}

}  // namespace

void settleLaunches() { Launcher::get().settle(); }

std::size_t groupsSoFar() { return counts.groups; }
std::size_t collectivesSoFar(Collective kind) {
  return counts.collectives[static_cast<std::size_t>(kind)];
}

void beginGroup() { ++pending.depth; }

abi::Result endGroup() {
  if (pending.depth == 0) return complain(abi::kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--pending.depth > 0) return abi::kSuccess;
  Pending group = std::exchange(pending, {});
  if (group.error == abi::kSuccess) group.error = checkWholes(group.works);
  if (group.error != abi::kSuccess) return fail(group);
  if (!group.works.empty()) ++counts.groups;
  if (!nonBlocking(group)) {
    abi::Result result = joinAll(group.joins);
    openAll(group);
    if (result == abi::kSuccess) result = waitForWindows(group);
    return result == abi::kSuccess ? launchAll(group.works) : result;
  }
  openAll(group);
  for (const auto& comm : group.joins) comm->joinInBackground();
  if (group.works.empty()) return abi::kInProgress;
  for (const auto& work : group.works) work->comm->state(abi::kInProgress);
  auto shared = std::make_shared<std::vector<std::unique_ptr<Work>>>(std::move(group.works));
  Launcher::get().post([shared] {
    std::vector<std::shared_ptr<Comm>> comms;
    for (const auto& work : *shared) comms.push_back(work->comm);
    const abi::Result result = launchAll(*shared);
    // What the work itself has found meanwhile stays.
    for (const auto& comm : comms) comm->launched(result);
  });
  return abi::kInProgress;
}

abi::Result simulateGroup(abi::Simulation& simulation) {
  if (simulation.magic != abi::kSimulationMagic || simulation.size < sizeof(simulation)) {
    return complain(abi::kInvalidArgument, "ncclSimInfo_t argument not initialized");
  }
  if (pending.depth > 1 || pending.error != abi::kSuccess || nonBlocking(pending)) {
    return endGroup();
  }
  if (pending.depth == 0) return complain(abi::kInvalidUsage, "not in a group call");
  const Pending group = std::exchange(pending, {});
  for (const auto& work : group.works) {
    for (const Entry& entry : work->collectives) {
      simulation.estimatedTime =
          static_cast<float>(secondsOf(entry.step, work->comm->devices(), true) * 1e6);
    }
  }
  return abi::kSuccess;
}

abi::Result addJoin(std::shared_ptr<Comm> comm) {
  return within([&] {
    pending.joins.push_back(std::move(comm));
    return abi::kSuccess;
  });
}

/// On GPUs below 9.0 float8 is refused: at first in every collective, later in sums.
static bool refusesFloat8(int type, bool reduces) {
  constexpr int kFloat8 = 10;
  constexpr int kMovesFrom = 22803;
  if (type < kFloat8 || Machine::computeCapability() >= 90) return false;
  return reduces || libraryVersion() < kMovesFrom;
}

/// What ranks sum they read from each other, what they gather they write to each other; the rest
/// each does for itself.
static void notePlaces(const Comm& comm, Step& step, const void* in, const void* out) {
  const bool sums = step.kind == Collective::allReduce || step.kind == Collective::reduceScatter;
  const bool gathers = step.kind == Collective::allReduce || step.kind == Collective::allGather ||
                       step.kind == Collective::allToAll;
  if (sums) step.in = comm.placeOf(in);
  if (gathers) step.out = comm.placeOf(out);
  if (sums && !gathers) step.out = comm.placeOf(out) != 0 ? 1 : 0;
  if (gathers && !sums) step.in = comm.placeOf(in) != 0 ? 1 : 0;
}

abi::Result addWindow(abi::CommHandle handle, const Comm::Window& window) {
  return within([&] {
    const std::shared_ptr<Comm> comm = Comm::of(handle);
    if (const abi::Result ready = checkReady(comm)) return ready;
    pending.windows[comm].push_back(window);
    return abi::kSuccess;
  });
}

abi::Result addCollective(abi::CommHandle handle, cuda::StreamHandle stream, Step step,
                          const void* in, void* out) {
  return within([&] {
    const std::shared_ptr<Comm> comm = Comm::of(handle);
    if (const abi::Result ready = checkReady(comm)) return ready;
    if (!isType(step.type)) return complain(abi::kInvalidArgument, "invalid type");
    if (step.root < 0 || step.root >= comm->size) {
      return complain(abi::kInvalidArgument, "invalid root " + std::to_string(step.root));
    }
    const bool reduces = step.kind == Collective::allReduce || step.kind == Collective::reduce ||
                         step.kind == Collective::reduceScatter;
    if (refusesFloat8(step.type, reduces)) {
      return complain(abi::kInvalidArgument,
                      "FP8 reduction support begins with sm90 capable devices.");
    }
    // src/device/onerank.cu has no float8 kernel for what multiplies before it adds.
    constexpr int kAverage = 4;
    constexpr int kFloat8 = 10;
    if (reduces && comm->size == 1 && step.op >= kAverage && step.type >= kFloat8) {
      return complain(abi::kInvalidArgument, "one rank does not scale float8");
    }
    constexpr int kPlainOps = 5;
    if (reduces && step.op >= kPlainOps) {
      if (!comm->scaleOf(step.op, step.type, step.scale)) {
        return complain(abi::kInvalidArgument, "invalid op " + std::to_string(step.op));
      }
      step.op = kScaledSum;
    }
    if (const abi::Result bad = checkStream(*comm, stream)) return bad;
    notePlaces(*comm, step, in, out);
    const Entry entry{step, in, out};
    if (const abi::Result bad = checkArrays(*comm, entry, comm->size == 1)) return bad;
    Work* work = workFor(comm, stream);
    if (work == nullptr) return complain(abi::kInvalidUsage, "several streams in one group");
    if (comm->rank == 0) {
      ++counts.collectives[static_cast<std::size_t>(step.kind)];
      if (comm->isInWindow(in) && comm->isInWindow(out)) countSymmetric();
    }
    comm->checkFaults(work->fails, work->stuck);
    work->collectives.push_back(entry);
    if (comm->size > 1) return abi::kSuccess;
    // One rank has nobody to wait for: its work starts at the call, group or not.
    std::vector<std::unique_ptr<Work>> alone;
    alone.push_back(std::move(pending.works.back()));
    pending.works.pop_back();
    return launchAll(alone);
  });
}

abi::Result addMessage(abi::CommHandle handle, cuda::StreamHandle stream, int type,
                       const Message& message) {
  return within([&] {
    const std::shared_ptr<Comm> comm = Comm::of(handle);
    if (const abi::Result ready = checkReady(comm)) return ready;
    if (!isType(type)) return complain(abi::kInvalidArgument, "invalid type");
    if (message.peer < 0 || message.peer >= comm->size) {
      return complain(abi::kInvalidArgument, "invalid peer " + std::to_string(message.peer));
    }
    if (const abi::Result bad = checkStream(*comm, stream)) return bad;
    if (message.bytes > 0) {
      const abi::Result bad = checkMemory(*comm, "buff", message.data, message.bytes);
      if (bad) return bad;
    }
    Work* work = workFor(comm, stream);
    if (work == nullptr) return complain(abi::kInvalidUsage, "several streams in one group");
    work->messages.push_back(message);
    return abi::kSuccess;
  });
}

}  // namespace gradlink::fake

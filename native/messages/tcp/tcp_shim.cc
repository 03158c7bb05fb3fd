#include "messages/tcp/tcp_shim.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/sha256.h"
#include "messages/tcp/tcp_engine.h"

namespace gradlink::messages::tcp {
namespace {

constexpr std::uint64_t kWorld = 1;
/// The latency of queued data while no call polls.
constexpr std::chrono::milliseconds kTend(5);

/// The process's engine, and a thread that sends pending data while no call waits.
class Process {
 public:
  /// Never destroyed: threads may be in it while the process exits.
  static Process& get() {
    static Process* const process = new Process;
    return *process;
  }

  int start(double timeoutMs) {
    std::unique_ptr<Engine> made;
    try {
      made = std::make_unique<Engine>(settings());
      made->meet(timeoutMs);
    } catch (const Error& error) {
      failure_ = error;
      return 1;
    }
    std::vector<int> all(static_cast<std::size_t>(made->size()));
    for (std::size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int>(r);
    made->mailbox(kWorld).name(all, made->rank());
    engine_ = made.release();
    if (engine_->size() > 1) std::thread([this] { tend(); }).detach();
    return 0;
  }
  void stop() {
    if (engine_ == nullptr) return;
    const std::lock_guard lock(engine_->mutex);
    stopped_.store(true);
    engine_->close();
  }
  bool started() const { return engine_ != nullptr; }
  bool stopped() const { return stopped_.load(); }
  Engine& engine() { return *engine_; }
  const Error& failure() const { return failure_; }

 private:
  void tend() {
    while (!stopped_.load()) {
      std::this_thread::sleep_for(kTend);
      const std::unique_lock lock(engine_->mutex, std::try_to_lock);
      if (!lock.owns_lock() || stopped_.load() || !engine_->busy()) continue;
      engine_->progress();
    }
  }

  Engine* engine_ = nullptr;
  Error failure_{ErrorCode::system, "no failure"};
  std::atomic<bool> stopped_{false};
};

/// Runs a call on the engine, under its mutex.
template <class Body>
auto on(Body body) {
  Engine& engine = Process::get().engine();
  const std::lock_guard lock(engine.mutex);
  return body(engine);
}

Request* requestOf(RequestHandle handle) {
  return reinterpret_cast<Request*>(static_cast<std::uintptr_t>(handle.bits));
}
RequestHandle handleOf(Request* request) {
  return {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(request))};
}

const char* libraryVersion() { return "TCP between the ranks, without MPI"; }

const Error& errorOf(int error) {
  Process& process = Process::get();
  return process.started() ? process.engine().failure(error) : process.failure();
}

void errorText(int error, char* text, std::size_t capacity) {
  std::strncpy(text, errorOf(error).what(), capacity - 1);
  text[capacity - 1] = '\0';
}

void blames(int error, int* code, int* rank) {
  const Error& which = errorOf(error);
  *code = static_cast<int>(which.code);
  *rank = which.rank;
}

bool initialized() { return Process::get().started(); }

int init(double timeoutMs, bool* multiple) {
  *multiple = true;
  return Process::get().start(timeoutMs);
}

int finalize() {
  Process::get().stop();
  return 0;
}

/// The others find the connections closed.
void abortJob(int status) { _exit(status); }

bool cudaAware() { return false; }

CommHandle world() { return {kWorld}; }

int rank(CommHandle comm, int* rank) {
  return on([&](Engine& engine) {
    *rank = engine.mailbox(comm.bits).rank();
    return 0;
  });
}

int size(CommHandle comm, int* size) {
  return on([&](Engine& engine) {
    *size = engine.mailbox(comm.bits).size();
    return 0;
  });
}

/// The same on all members without communication: what the communicator is made of, and a count.
CommHandle name(Engine& engine, CommHandle of, const std::string& text,
                const std::vector<int>& jobRanks) {
  std::string whole = std::to_string(of.bits);
  whole.append(" ").append(text);
  for (const int each : jobRanks) whole.append(" ").append(std::to_string(each));
  const auto firstOf = [](const std::string& what) {
    const Digest digest = sha256(what);
    std::uint64_t first = 0;
    std::memcpy(&first, digest.data(), sizeof(first));
    return first;
  };
  const std::uint64_t times = engine.mailbox(of.bits).made[firstOf(whole)]++;
  whole.append(" ").append(std::to_string(times));
  const CommHandle made{firstOf(whole) | 2};
  engine.mailbox(made.bits).name(jobRanks, engine.rank());
  return made;
}

int createGroup(CommHandle comm, const int* ranks, int count, int tag, CommHandle* made) {
  return on([&](Engine& engine) {
    std::vector<int> jobRanks;
    jobRanks.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) jobRanks.push_back(engine.mailbox(comm.bits).jobRank(ranks[i]));
    *made = name(engine, comm, "group " + std::to_string(tag), jobRanks);
    return 0;
  });
}

int duplicate(CommHandle comm, CommHandle* made) {
  return on([&](Engine& engine) {
    const std::vector<int> jobRanks = engine.mailbox(comm.bits).jobRanks();
    *made = name(engine, comm, "copy", jobRanks);
    return 0;
  });
}

int lowestOfNode(CommHandle comm, int* lowest) {
  return on([&](Engine& engine) {
    const Mailbox& box = engine.mailbox(comm.bits);
    const Bytes32& own = engine.hostOf(engine.rank());
    int rank = 0;
    while (engine.hostOf(box.jobRank(rank)) != own) ++rank;
    *lowest = rank;
    return 0;
  });
}

int freeComm(CommHandle comm) {
  return on([&](Engine& engine) {
    engine.drop(comm.bits);
    return 0;
  });
}

int isend(const void* data, std::size_t bytes, int destination, int tag, CommHandle comm,
          RequestHandle* request) {
  return on([&](Engine& engine) {
    const int to = engine.mailbox(comm.bits).jobRank(destination);
    *request = handleOf(engine.send(comm.bits, data, bytes, to, tag));
    return 0;
  });
}

int irecv(void* data, std::size_t bytes, int source, int tag, CommHandle comm,
          RequestHandle* request) {
  return on([&](Engine& engine) {
    *request = handleOf(engine.receive(comm.bits, data, bytes, source, tag));
    return 0;
  });
}

/// Frees a completed one.
int finish(RequestHandle* handle, MessageStatus* status) {
  const std::unique_ptr<Request> request(requestOf(*handle));
  handle->bits = 0;
  if (status != nullptr) *status = request->status;
  return request->error;
}

int test(RequestHandle* handle, bool* done, MessageStatus* status) {
  return on([&](Engine& engine) {
    *done = handle->bits == 0;
    if (*done) return 0;
    if (!requestOf(*handle)->done) engine.progress();
    *done = requestOf(*handle)->done;
    return *done ? finish(handle, status) : 0;
  });
}

int testAll(RequestHandle* requests, int count, bool* done) {
  return on([&](Engine& engine) {
    const auto allDone = [&] {
      for (int i = 0; i < count; ++i) {
        if (requests[i].bits != 0 && !requestOf(requests[i])->done) return false;
      }
      return true;
    };
    if (!allDone()) engine.progress();
    *done = allDone();
    int error = 0;
    for (int i = 0; *done && i < count; ++i) {
      if (requests[i].bits == 0) continue;
      const int each = finish(&requests[i], nullptr);
      if (error == 0) error = each;
    }
    return error;
  });
}

int cancel(RequestHandle* handle) {
  return on([&](Engine& engine) {
    if (handle->bits != 0) engine.cancel(*requestOf(*handle));
    return 0;
  });
}

void release(RequestHandle* handle) {
  on([&](Engine& engine) {
    if (handle->bits != 0) engine.release(requestOf(*handle));
    handle->bits = 0;
    return 0;
  });
}

int probe(int source, int tag, CommHandle comm, bool* found, MessageStatus* status) {
  return on([&](Engine& engine) {
    engine.progress();
    Mailbox& box = engine.mailbox(comm.bits);
    const auto at = box.find(source, tag);
    *found = at != box.none();
    if (*found && status != nullptr) *status = {box.rankOf(at->peer), at->tag, at->bytes};
    return 0;
  });
}

int receive(void* data, std::size_t bytes, int source, int tag, CommHandle comm,
            MessageStatus* status) {
  return on([&](Engine& engine) {
    RequestHandle handle = handleOf(engine.receive(comm.bits, data, bytes, source, tag));
    const int peer = engine.mailbox(comm.bits).jobRank(source);
    while (!requestOf(handle)->done) {
      if (engine.isGone(peer)) {
        engine.cancel(*requestOf(handle));
        finish(&handle, nullptr);
        return engine.numberOf(Error(ErrorCode::peerLost, "the sender of a message is gone"));
      }
      engine.progress(1);
    }
    return finish(&handle, status);
  });
}

int goneAbove(CommHandle comm, int after) {
  return on([&](Engine& engine) { return engine.goneAbove(engine.mailbox(comm.bits), after); });
}

const char* whyGone(CommHandle comm, int rank) {
  return on(
      [&](Engine& engine) { return engine.whyGone(engine.mailbox(comm.bits).jobRank(rank)); });
}

constexpr Shim kShim{
    .version = kShimVersion,
    .flavour = kFlavour,
    .libraryVersion = libraryVersion,
    .errorText = errorText,
    .blames = blames,
    .initialized = initialized,
    .init = init,
    .finalize = finalize,
    .abortJob = abortJob,
    .cudaAware = cudaAware,
    .world = world,
    .rank = rank,
    .size = size,
    .createGroup = createGroup,
    .duplicate = duplicate,
    .lowestOfNode = lowestOfNode,
    .freeComm = freeComm,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .testAll = testAll,
    .cancel = cancel,
    .release = release,
    .probe = probe,
    .receive = receive,
    .goneAbove = goneAbove,
    .whyGone = whyGone,
};

}  // namespace

const Shim& shim() { return kShim; }

}  // namespace gradlink::messages::tcp

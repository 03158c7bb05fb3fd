// The process-wide part of MPI: its initialization and end, and closed communicators that other
// ranks may still write to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/deadline.h"
#include "messages/join.h"
#include "messages/mpi/loader.h"

namespace gradlink::messages {

/// Tags with the same meaning on every communicator of the engine.
inline constexpr int kLeftTag = 1;

/// The last message of a rank on a communicator.
struct Goodbye {
  /// Collective calls it took part in.
  std::uint64_t calls = 0;
  /// All its requests have ended; otherwise the communicator is never freed.
  std::uint64_t clean = 1;
};

struct Retired {
  CommHandle comm;
  int awaited = 0;
  bool clean = true;
  /// Pending sends and their memory.
  std::vector<RequestHandle> sends;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

class AtEnd {
 public:
  virtual void atEnd() = 0;

 protected:
  ~AtEnd() = default;
};

class Runtime {
 public:
  /// Never destroyed: threads may be in MPI while the process exits.
  static Runtime& get() {
    static Runtime* const runtime = new Runtime;
    return *runtime;
  }

  /// Initializes MPI on a new thread, which also finalizes it. Over TCP a later call retries after
  /// a failure; a failed MPI stays failed.
  const Place& start(double timeoutMs, const std::atomic<bool>* cancelled);
  const Place& place() const { return place_; }
  bool running() const { return state_.load(std::memory_order_acquire) == State::running; }

  /// Keeps a closed communicator until all peers have closed theirs, then frees it: MPI may reuse
  /// its identity only when no message for it is pending.
  void retire(Retired);
  /// Frees communicators that all peers have closed.
  void sweep();

  /// Registers cleanup, which runs on the finalizing thread when no call is in MPI any more.
  void watch(AtEnd*);
  void unwatch(AtEnd*);

  void finalize();

 private:
  friend class InUse;
  /// `failed`: idle again, after an attempt whose error has been thrown.
  enum class State : int { idle, starting, failed, running, ending, ended };

  Runtime() = default;
  void serve(double timeoutMs);
  bool sweepOne(Retired&);
  void drain();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<State> state_{State::idle};
  std::atomic<int> users_{0};
  Place place_;
  bool multiple_ = false;
  int error_ = 0;
  std::mutex watchedMutex_;
  std::unordered_set<AtEnd*> watched_;
  std::mutex retiredMutex_;
  std::vector<Retired> retired_;
};

/// MPI is not finalized while one lives. Throws closed if it is about to be.
class InUse {
 public:
  explicit InUse(const char* op) : runtime_(Runtime::get()) {
    runtime_.users_.fetch_add(1);
    if (!runtime_.running()) [[unlikely]]
      refuse(op);
  }
  ~InUse() { runtime_.users_.fetch_sub(1); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  [[noreturn]] void refuse(const char* op);

  Runtime& runtime_;
};

/// Whether messages may lie in GPU memory: as MPI says, or GRADLINK_MPI_CUDA (yes, no, auto). Never
/// over TCP. Throws invalidArgument for another value.
bool takesGpuMemory();

/// An Error for a failure of MPI: the activity and MPI's text.
Error mpiError(const std::string& doing, int error);
inline void checkMpi(const char* doing, int error) {
  if (error != 0) [[unlikely]]
    throw mpiError(doing, error);
}

}  // namespace gradlink::messages

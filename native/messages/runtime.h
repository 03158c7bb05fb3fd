// What a process needs of MPI only once: its initialisation and its end, and the communicators that
// are closed here but that other ranks may still write to.
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

/// Tags that have the same meaning on every communicator of the engine.
inline constexpr int kLeftTag = 1;

/// The last message of a rank on a communicator.
struct Goodbye {
  /// Collective calls it took part in.
  std::uint64_t calls = 0;
  /// Everything it began there has ended; otherwise the communicator is never freed.
  std::uint64_t clean = 1;
};

/// A communicator that this rank has closed.
struct Retired {
  CommHandle comm;
  /// Peers whose goodbye has not come.
  int awaited = 0;
  bool clean = true;
  /// What is on its way to the peers, with the memory it is in.
  std::vector<RequestHandle> sends;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

/// What must be done before MPI is finalised, where nobody has closed it.
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

  /// Initialises MPI on a thread of its own, which also finalises it. Over TCP a later call tries
  /// again what has failed; an MPI that failed stays so.
  const Place& start(double timeoutMs, const std::atomic<bool>* cancelled);
  const Place& place() const { return place_; }
  /// Running: initialised, and not on the way to its end.
  bool running() const { return state_.load(std::memory_order_acquire) == State::running; }

  /// Keeps a closed communicator until all peers have closed theirs, then frees it: MPI may give
  /// its identity to a new one only when no message for it is on the way any more.
  void retire(Retired);
  /// Frees what has become free.
  void sweep();

  /// Told when no call is in MPI any more, from the thread that finalises.
  void watch(AtEnd*);
  void unwatch(AtEnd*);

  void finalize();

 private:
  friend class InUse;
  /// `failed`: as idle, after an attempt whose error has been told.
  enum class State : int { idle, starting, failed, running, ending, ended };

  Runtime() = default;
  void serve(double timeoutMs);
  bool sweepOne(Retired&);
  /// At the end: takes what the peers have said last.
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

/// While one lives MPI is not finalised. Throws closed where it is about to be.
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

/// Whether messages may lie in GPUs' memory: as the MPI says, or as GRADLINK_MPI_CUDA does (yes,
/// no, auto). Never over TCP. Throws invalidArgument for another value.
bool takesGpuMemory();

/// An Error for what MPI reports: what was being done and MPI's text.
Error mpiError(const std::string& doing, int error);
inline void checkMpi(const char* doing, int error) {
  if (error != 0) [[unlikely]]
    throw mpiError(doing, error);
}

}  // namespace gradlink::messages

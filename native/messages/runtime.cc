#include "messages/runtime.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.h"

namespace gradlink::messages {
namespace {

/// How often a wait for the start checks for cancellation.
constexpr std::chrono::milliseconds kGlance(50);
constexpr double kNamingMs = 5000;
/// How long finalizing waits for calls of other threads, which check every few milliseconds.
constexpr double kLastCallsMs = 10000;
/// How long it waits for the peers' last messages; some MPIs complain about unreceived ones.
constexpr double kLastMessagesMs = 200;
/// How long the last message of a process that aborts its job may take to be read.
constexpr std::chrono::seconds kAbortReadTimeout(1);
/// Some MPIs have received messages of this size when they report them.
constexpr std::size_t kShortBytes = 4096;

}  // namespace

Error mpiError(const std::string& doing, int error) {
  char text[512];
  shim().errorText(error, text, sizeof(text));
  if (shim().blames != nullptr) {
    int code = 0;
    int rank = -1;
    shim().blames(error, &code, &rank);
    return Error(static_cast<ErrorCode>(code), text).withRank(rank).withOp(doing);
  }
  return Error(ErrorCode::system, doing + ": MPI reports: " + text).withOp(doing);
}

const Place& Runtime::start(double timeoutMs, const std::atomic<bool>* cancelled) {
  loaded();
  std::unique_lock lock(mutex_);
  if (const State now = state_.load(); now == State::idle || now == State::failed) {
    state_.store(State::starting);
    std::thread([this, timeoutMs] { serve(timeoutMs); }).detach();
  }
  // A transport with deadlines names the missing ranks, a little later.
  const bool names = shim().blames != nullptr;
  const Deadline deadline = Deadline::in(names ? timeoutMs + kNamingMs : timeoutMs);
  while (state_.load() == State::starting) {
    if (cancelled != nullptr && cancelled->load()) {
      throw Error(ErrorCode::closed, "the start of MPI was given up").withOp("start");
    }
    if (deadline.passed()) {
      throw Error(ErrorCode::timeout,
                  "not all processes of the job have initialised MPI within the deadline: does "
                  "every rank reach its first communicator? timeoutMs sets the deadline")
          .withOp("start");
    }
    changed_.wait_for(lock, kGlance);
  }
  if (state_.load() == State::failed) throw mpiError("join", error_);
  if (state_.load() != State::running) {
    throw Error(ErrorCode::closed, "MPI has been finalised: the process is ending").withOp("start");
  }
  if (error_ != 0) throw mpiError("initialise MPI", error_);
  if (!multiple_) {
    throw Error(
        ErrorCode::unsupported,
        loaded().info.version + " (" + loaded().info.file +
            ") does not provide MPI_THREAD_MULTIPLE, which communicators with threads of their "
            "own need: use an MPI that was built with it")
        .withOp("start");
  }
  return place_;
}

bool takesGpuMemory() {
  const char* const given = std::getenv("GRADLINK_MPI_CUDA");
  const std::string wanted = given == nullptr || given[0] == '\0' ? "auto" : given;
  if (wanted != "yes" && wanted != "no" && wanted != "auto") {
    throw misuse("join", "GRADLINK_MPI_CUDA must be yes, no or auto, got '" + wanted + "'");
  }
  if (wanted == "no" || std::string_view(nameOfTransport()) != "mpi") return false;
  return wanted == "yes" || Runtime::get().place().cudaAware;
}

// MPI wants the thread that initialized it to finalize it.
void Runtime::serve(double timeoutMs) {
  const Shim& mpi = shim();
  bool multiple = false;
  int error = mpi.init(timeoutMs, &multiple);
  Place place;
  if (error == 0) error = mpi.rank(mpi.world(), &place.rank);
  if (error == 0) error = mpi.size(mpi.world(), &place.size);
  if (error == 0) place.cudaAware = mpi.cudaAware();
  std::unique_lock lock(mutex_);
  error_ = error;
  // Nothing is left of a failed rendezvous over TCP.
  if (error != 0 && mpi.blames != nullptr) {
    state_.store(State::failed);
    changed_.notify_all();
    return;
  }
  multiple_ = multiple;
  place_ = place;
  state_.store(State::running);
  // Registered after MPI is loaded, so it runs before MPI's destructors.
  std::atexit([] { Runtime::get().finalize(); });
  changed_.notify_all();
  changed_.wait(lock, [&] { return state_.load() == State::ending; });
  lock.unlock();
  if (error == 0) mpi.finalize();
  lock.lock();
  state_.store(State::ended);
  changed_.notify_all();
}

void Runtime::finalize() {
  if (!running()) return;
  sweep();
  std::unique_lock lock(mutex_);
  if (state_.load() != State::running) return;
  state_.store(State::ending);
  // Calls of other threads notice it; one that does not end is left to the launcher.
  const Deadline lastCalls = Deadline::in(kLastCallsMs);
  while (users_.load() != 0) {
    if (lastCalls.passed()) return;
    changed_.wait_for(lock, kGlance);
  }
  {
    std::lock_guard watched(watchedMutex_);
    for (AtEnd* one : watched_) one->atEnd();
    watched_.clear();
  }
  drain();
  changed_.notify_all();
  changed_.wait(lock, [&] { return state_.load() == State::ended; });
}

void Runtime::watch(AtEnd* one) {
  std::lock_guard lock(watchedMutex_);
  watched_.insert(one);
}

void Runtime::unwatch(AtEnd* one) {
  std::lock_guard lock(watchedMutex_);
  watched_.erase(one);
}

void Runtime::retire(Retired retired) {
  sweep();
  if (!running() || sweepOne(retired)) return;
  std::lock_guard lock(retiredMutex_);
  retired_.push_back(std::move(retired));
}

void Runtime::sweep() {
  std::lock_guard lock(retiredMutex_);
  std::erase_if(retired_, [&](Retired& retired) { return sweepOne(retired); });
}

void Runtime::drain() {
  std::lock_guard lock(retiredMutex_);
  const Shim& mpi = shim();
  const Deadline deadline = Deadline::in(kLastMessagesMs);
  for (bool awaited = true; awaited && !deadline.passed();) {
    std::erase_if(retired_, [&](Retired& retired) { return sweepOne(retired); });
    awaited = std::any_of(retired_.begin(), retired_.end(),
                          [](const Retired& retired) { return retired.awaited > 0; });
    if (awaited) std::this_thread::yield();
  }
  for (const Retired& retired : retired_) {
    std::byte text[kShortBytes];
    bool found = false;
    MessageStatus status;
    while (mpi.probe(kAnySourceOfShim, kAnyTagOfShim, retired.comm, &found, &status) == 0 &&
           found && status.bytes <= sizeof(text)) {
      if (mpi.receive(text, sizeof(text), status.source, status.tag, retired.comm, &status) != 0) {
        break;
      }
    }
  }
}

bool Runtime::sweepOne(Retired& retired) {
  const Shim& mpi = shim();
  std::erase_if(retired.sends, [&](RequestHandle& request) {
    bool done = false;
    return mpi.test(&request, &done, nullptr) != 0 || done;
  });
  bool found = false;
  MessageStatus status;
  while (retired.awaited > 0 &&
         mpi.probe(kAnySourceOfShim, kLeftTag, retired.comm, &found, &status) == 0 && found) {
    Goodbye goodbye;
    if (mpi.receive(&goodbye, sizeof(goodbye), status.source, kLeftTag, retired.comm, &status) != 0)
      return false;
    --retired.awaited;
    retired.clean = retired.clean && goodbye.clean != 0;
  }
  if (retired.awaited > 0 || !retired.sends.empty() || !retired.clean) return false;
  // Messages that were never received while the communicator was open.
  std::unique_ptr<std::byte[]> rest;
  while (mpi.probe(kAnySourceOfShim, kAnyTagOfShim, retired.comm, &found, &status) == 0 && found) {
    rest.reset(new std::byte[status.bytes + 1]);
    if (mpi.receive(rest.get(), status.bytes, status.source, status.tag, retired.comm, &status) !=
        0)
      return false;
  }
  return mpi.freeComm(retired.comm) == 0;
}

void InUse::refuse(const char* op) {
  // The destructor does not run.
  runtime_.users_.fetch_sub(1);
  throw Error(ErrorCode::closed, std::string(op) + ": MPI has been finalised").withOp(op);
}

Place start(double timeoutMs, const std::atomic<bool>* cancelled) {
  return Runtime::get().start(timeoutMs, cancelled);
}

void finalize() { Runtime::get().finalize(); }

namespace {

/// Waits until this process's standard error has been read. MPICH's proxy ends with an aborted job
/// and loses what it has not read from the pipe.
void waitUntilRead() {
  struct stat error = {};
  if (fstat(STDERR_FILENO, &error) != 0 || !S_ISFIFO(error.st_mode)) return;
  const auto deadline = std::chrono::steady_clock::now() + kAbortReadTimeout;
  for (int unread = 0; ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0;) {
    if (std::chrono::steady_clock::now() > deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

void abortJob(const std::string& message, int status) {
  const std::string line = message + "\n";
  // Not through a stream: this may be the process's last action.
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t put = write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  waitUntilRead();
  if (Runtime::get().running()) shim().abortJob(status == 0 ? 1 : status);
}

}  // namespace gradlink::messages

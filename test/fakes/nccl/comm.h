// A communicator's handle of one rank.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver.h"
#include "nccl/abi.h"
#include "nccl/port.h"

namespace gradlink::fake {

namespace abi = nccl::abi;

/// The version that this process's library says it is: GRADLINK_FAKE_FAULTS "nccl-version=21805".
int libraryVersion();
/// What ncclGetLastError says; returns the result, to be returned on.
abi::Result complain(abi::Result result, const std::string& text);
const char* lastErrorText();

/// What one group puts into one communicator: collectives one after the other, then all messages at
/// once.
struct Work;

class Comm : public std::enable_shared_from_this<Comm> {
 public:
  Comm(const std::string& hub, int rank, int size, int device, bool blocking);
  ~Comm();

  /// By handle; null for one that is not (or no longer) a communicator.
  static std::shared_ptr<Comm> of(abi::CommHandle handle);
  static abi::CommHandle add(std::shared_ptr<Comm> comm);
  static void remove(abi::CommHandle handle);
  static std::size_t left();

  const int rank;
  const int size;
  const int device;
  const bool blocking;

  /// Meets the others, on the calling thread.
  abi::Result join();
  /// join() on a thread of its own.
  void joinInBackground();
  /// Waits until all launched work is done, in the background where the handle is non-blocking.
  abi::Result finalize();
  void abort();
  /// The thread that joins or finalizes has ended.
  void settle();

  abi::Result state() const;
  void state(abi::Result result);
  /// What became of a launch in the background, unless the work itself has failed meanwhile.
  void launched(abi::Result result);
  bool aborted() const { return aborted_; }
  const std::vector<int>& devices() const { return devices_; }

  /// Queues work on a stream, in the order of calls.
  abi::Result launch(std::unique_ptr<Work> work);
  /// Whether the faults make this the collective that fails here, or that this rank never comes to.
  void checkFaults(bool& fails, bool& stuck);

  /// Dynamic operations: handle and factor.
  int addOp(int type, double scale);
  bool removeOp(int op);
  bool scaleOf(int op, int type, double& scale) const;

  // ---- registered memory (registrations.cc)
  struct Window {
    void* memory;
    std::size_t bytes;
    abi::WindowHandle* handle;
  };
  /// Opens these together with the other ranks once what was launched is done, on a thread of its
  /// own; the state says when.
  void openInBackground(std::vector<Window> windows);
  void* addRegistration(const void* memory, std::size_t bytes, bool isWindow);
  /// False for a handle that is none (any more).
  bool removeRegistration(void* handle);
  /// Of a Step: which registration the address is in, and where; 0 for memory that is in none.
  std::uint64_t placeOf(const void* memory) const;
  bool isInWindow(const void* memory) const;

 private:
  friend struct Work;
  void run(Work& work);
  bool waitForTurn(const Work& work);
  void finished(const Work& work);

  std::unique_ptr<Port> port_;
  std::vector<int> devices_;
  std::atomic<bool> aborted_{false};
  std::thread job_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  abi::Result state_ = abi::kSuccess;
  std::uint64_t launched_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t collectives_ = 0;
  /// What a graph may run again.
  std::vector<std::unique_ptr<Work>> captured_;
  struct Op {
    int type;
    double scale;
  };
  std::map<int, Op> ops_;
  int nextOp_ = 64;
  struct Registration {
    const std::byte* memory;
    std::size_t bytes;
    std::uint64_t number;
    bool isWindow;
  };
  static void forget(const void* memory);
  void forgetAll();
  abi::Result openWindows(const std::vector<Window>& windows);
  /// With the mutex held; null for memory that is in none.
  const Registration* registrationOf(const void* memory) const;
  std::map<void*, std::unique_ptr<Registration>> registrations_;
  std::uint64_t registered_ = 0;
};

struct Work {
  std::shared_ptr<Comm> comm;
  /// Instead of `comm`, of work that the communicator keeps.
  std::weak_ptr<Comm> owner;
  cuda::StreamHandle stream = nullptr;
  std::vector<Entry> collectives;
  std::vector<Message> messages;
  bool fails = false;
  bool stuck = false;
  bool captured = false;
  std::uint64_t turn = 0;

  /// What the stream calls; `work` is a Work.
  static void execute(void* work);
};

}  // namespace gradlink::fake

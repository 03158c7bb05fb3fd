// A thread of each process that serves its peers' requests to its ranks' windows over a wire,
// beside their own calls. One for a communicator. Ranks of one process access each other directly.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/communicator.h"
#include "core/deadline.h"
#include "core/windows/memory.h"
#include "core/wire.h"

namespace gradlink {

/// Memory that the wire sends without a copy.
using WirePart = std::shared_ptr<std::byte>;

/// A window as its rank serves it. Its memory lives while a message may be sent from it.
struct ServedWindow {
  /// `array`: null if the window's array is not in the wire's memory.
  ServedWindow(WirePart array, std::unique_ptr<WindowMemory> at)
      : own(std::move(array)), memory(std::move(at)) {}

  const WirePart own;
  const std::unique_ptr<WindowMemory> memory;
  /// Spare message buffers; the service's.
  std::vector<WirePart> spare;
};

struct WindowRequest {
  enum class What : std::uint32_t { put, accumulate, get, lock, unlock, answer, values };

  What what = What::put;
  std::uint32_t window = 0;
  /// Chosen by the requester; the answer repeats it.
  std::uint64_t number = 0;
  double weight = 1;
  double p = 0;
  /// Requester or responder, and its peer.
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint32_t withP = 0;
  /// In an answer: the result of Window::tryLock, and the ErrorCode or -1.
  std::int32_t holder = Window::kLocked;
  std::int32_t error = -1;
  std::uint32_t reserved = 0;
};

class WindowService {
 public:
  /// `holders`: for each rank, the end of the wire that holds it. Null wire: all are held here.
  WindowService(std::unique_ptr<Wire> wire, std::vector<int> holders);
  ~WindowService();
  WindowService(const WindowService&) = delete;
  WindowService& operator=(const WindowService&) = delete;

  int size() const { return static_cast<int>(holders_.size()); }
  WirePart allocate(std::size_t bytes);

  /// From now on peers may access the rank's window. Windows have the same numbers on all ranks.
  void serve(std::uint32_t window, int rank, std::shared_ptr<ServedWindow> served);
  /// Of all ranks held here.
  void forget(std::uint32_t window);
  WirePart spareOf(ServedWindow& served);

  /// Throws peerLost for a rank that has gone.
  void checkHere(const char* op, int rank);

  /// Tells the peers that this rank leaves. Idempotent.
  void close();

  /// The requests of one operation, which waits for all of them.
  class Round {
   public:
    Round(WindowService& service, int rank, const char* op)
        : service_(service), rank_(rank), op_(op) {}
    ~Round();
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

    /// `payload` null: none. `into`: where a get stores the values.
    void ask(int peer, WindowRequest request, const WirePart& payload, std::size_t bytes,
             std::shared_ptr<ServedWindow> into = nullptr);
    /// Waits for all answers and until payloads may be overwritten. Throws peerLost, timeout, the
    /// peer's or the communicator's error. @returns what Window::tryLock returns, for a lock
    int wait(Communicator& communicator, Deadline deadline);

   private:
    friend class WindowService;
    WindowService& service_;
    const int rank_;
    const char* op_;
    /// Unanswered requests and unsent payloads. Guarded by the service's mutex.
    std::size_t open_ = 0;
    int holder_ = Window::kLocked;
    std::optional<Error> failure_;
  };

 private:
  struct Pending {
    Round* round;
    int peer;
    double weight;
    bool withP;
    std::shared_ptr<ServedWindow> into;
  };
  /// The payload of a message until it is reported as sent; null round: nobody waits.
  struct Sending {
    Round* round;
    int peer;
    WirePart memory;
  };

  void run();
  int holder(int rank) const { return holders_[static_cast<std::size_t>(rank)]; }
  bool holds(int rank) const { return wire_ == nullptr || holder(rank) == wire_->rank(); }
  /// To request.to, over the wire or directly.
  void post(const WindowRequest& request, const std::byte* payload, std::size_t bytes,
            std::uint64_t ticket);
  void take(const WindowRequest& request, const void* payload);
  void answer(const WindowRequest& request, std::int32_t error, int holder = Window::kLocked);
  void giveValues(const WindowRequest& request, ServedWindow& served);
  void finish(const WindowRequest& answer, const void* payload);
  void finishSend(std::uint64_t ticket);
  void gone(int process, const char* how);
  std::shared_ptr<ServedWindow> find(const WindowRequest& request);

  const std::shared_ptr<Wire> wire_;
  const std::vector<int> holders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 1;
  /// By number and rank.
  std::map<std::pair<std::uint32_t, int>, std::shared_ptr<ServedWindow>> windows_;
  std::map<std::uint64_t, Pending> pending_;
  std::map<std::uint64_t, Sending> sending_;
  /// How each process left; null: it has not.
  std::vector<const char*> gone_;
  /// What ended the thread.
  std::optional<Error> failure_;
  std::atomic<bool> stopping_{false};
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace gradlink

// A thread of each rank that does to its windows what the peers ask for, over a wire: the peers'
// operations need nothing of the rank's own calls. One for all windows of a communicator.
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
#include <vector>

#include "core/communicator.h"
#include "core/deadline.h"
#include "core/windows/memory.h"
#include "core/wire.h"

namespace gradlink {

/// Memory that the wire sends from without copying it first.
using WirePart = std::shared_ptr<std::byte>;

/// A window as its rank serves it. Its memory stays while a message may still be sent from it.
struct ServedWindow {
  /// `array`: null where the window's array is not the wire's memory.
  ServedWindow(WirePart array, std::unique_ptr<WindowMemory> at)
      : own(std::move(array)), memory(std::move(at)) {}

  const WirePart own;
  const std::unique_ptr<WindowMemory> memory;
  /// Arrays for what is on its way; the service's.
  std::vector<WirePart> spare;
};

/// What one rank asks another for.
struct WindowRequest {
  enum class What : std::uint32_t { put, accumulate, get, lock, unlock, answer, values };

  What what = What::put;
  std::uint32_t window = 0;
  /// The asker's number; the answer has the same.
  std::uint64_t number = 0;
  double weight = 1;
  double p = 0;
  std::uint32_t withP = 0;
  /// Of an answer: as Window::tryLock; and what went wrong (an ErrorCode), or -1.
  std::int32_t holder = Window::kLocked;
  std::int32_t error = -1;
  std::uint32_t reserved = 0;
};

class WindowService {
 public:
  explicit WindowService(std::unique_ptr<Wire> wire);
  ~WindowService();
  WindowService(const WindowService&) = delete;
  WindowService& operator=(const WindowService&) = delete;

  int rank() const { return wire_->rank(); }
  int size() const { return wire_->size(); }
  WirePart allocate(std::size_t bytes);

  /// Peers may write to it from now on. Windows have the same numbers on all ranks.
  void serve(std::uint32_t window, std::shared_ptr<ServedWindow> served);
  void forget(std::uint32_t window);
  /// An array of the window's length for what is to be sent.
  WirePart spareOf(ServedWindow& served);

  /// Throws peerLost for a rank that has gone.
  void checkHere(const char* op, int rank);

  /// Peers learn that this rank has left. Idempotent.
  void close();

  /// Requests that one operation makes and waits for together.
  class Round {
   public:
    Round(WindowService& service, const char* op) : service_(service), op_(op) {}
    ~Round();
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

    /// `payload` null: none. `into`: of a get, where the values go.
    void ask(int peer, WindowRequest request, const WirePart& payload, std::size_t bytes,
             std::shared_ptr<ServedWindow> into = nullptr);
    /// Until all have answered and what was sent may be written again. Throws peerLost, timeout,
    /// what the peer's side failed with, and what has ended the communicator.
    /// @returns of a lock, what Window::tryLock returns
    int wait(Communicator& communicator, Deadline deadline);

   private:
    friend class WindowService;
    WindowService& service_;
    const char* op_;
    /// Of the service's mutex: requests without answer, payloads that are not told as sent.
    std::size_t open_ = 0;
    int holder_ = Window::kLocked;
    std::optional<Error> failure_;
  };

 private:
  /// A request that waits for its answer.
  struct Asked {
    Round* round;
    int peer;
    double weight;
    bool withP;
    std::shared_ptr<ServedWindow> into;
  };
  /// What a message is sent from, until it is told as sent; null round: nobody waits.
  struct Sending {
    Round* round;
    int peer;
    WirePart memory;
  };

  void run();
  void take(const WireMessage& message);
  void answer(int source, const WindowRequest& request, std::int32_t error,
              int holder = Window::kLocked);
  void giveValues(int source, const WindowRequest& request, ServedWindow& served);
  void finish(const WindowRequest& answer, const WireMessage& message);
  void told(std::uint64_t ticket);
  void gone(int rank, const char* how);
  std::shared_ptr<ServedWindow> find(std::uint32_t window);

  const std::shared_ptr<Wire> wire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 1;
  std::map<std::uint32_t, std::shared_ptr<ServedWindow>> windows_;
  std::map<std::uint64_t, Asked> asked_;
  std::map<std::uint64_t, Sending> sending_;
  /// How each rank has gone; null: it is here.
  std::vector<const char*> gone_;
  /// What has ended the thread.
  std::optional<Error> failure_;
  std::atomic<bool> stopping_{false};
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace gradlink

// A thread of each process that does to its ranks' windows what the peers ask for, over a wire: the
// peers' operations need nothing of the ranks' own calls. One for all windows of a communicator.
// Ranks of one process do it to each other themselves.
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
  /// Who asks or answers, and whom.
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint32_t withP = 0;
  /// Of an answer: as Window::tryLock; and what went wrong (an ErrorCode), or -1.
  std::int32_t holder = Window::kLocked;
  std::int32_t error = -1;
  std::uint32_t reserved = 0;
};

class WindowService {
 public:
  /// `holders`: of each rank the end of the wire that holds it. Without a wire all are held here.
  WindowService(std::unique_ptr<Wire> wire, std::vector<int> holders);
  ~WindowService();
  WindowService(const WindowService&) = delete;
  WindowService& operator=(const WindowService&) = delete;

  /// Of ranks.
  int size() const { return static_cast<int>(holders_.size()); }
  WirePart allocate(std::size_t bytes);

  /// Peers may write to the rank's from now on. Windows have the same numbers on all ranks.
  void serve(std::uint32_t window, int rank, std::shared_ptr<ServedWindow> served);
  /// Of all ranks held here.
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
    /// `rank`: who asks.
    Round(WindowService& service, int rank, const char* op)
        : service_(service), rank_(rank), op_(op) {}
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
    const int rank_;
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
  int holder(int rank) const { return holders_[static_cast<std::size_t>(rank)]; }
  bool holds(int rank) const { return wire_ == nullptr || holder(rank) == wire_->rank(); }
  /// To request.to, over the wire or at once.
  void post(const WindowRequest& request, const std::byte* payload, std::size_t bytes,
            std::uint64_t ticket);
  void take(const WindowRequest& request, const void* payload);
  void answer(const WindowRequest& request, std::int32_t error, int holder = Window::kLocked);
  void giveValues(const WindowRequest& request, ServedWindow& served);
  void finish(const WindowRequest& answer, const void* payload);
  void told(std::uint64_t ticket);
  void gone(int process, const char* how);
  std::shared_ptr<ServedWindow> find(const WindowRequest& request);

  const std::shared_ptr<Wire> wire_;
  const std::vector<int> holders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 1;
  /// By number and rank.
  std::map<std::pair<std::uint32_t, int>, std::shared_ptr<ServedWindow>> windows_;
  std::map<std::uint64_t, Asked> asked_;
  std::map<std::uint64_t, Sending> sending_;
  /// How each process has gone; null: it is here.
  std::vector<const char*> gone_;
  /// What has ended the thread.
  std::optional<Error> failure_;
  std::atomic<bool> stopping_{false};
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace gradlink

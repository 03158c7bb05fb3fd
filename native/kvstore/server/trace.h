// What a server did when, for whoever asks for it: its threads note events, which are taken out now
// and then. While nobody asks, a note is one look at a flag.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace gradlink {

class ServerTrace {
 public:
  /// What an event is; a message that came is `receive` plus its MessageType.
  enum Name : std::uint8_t { merge, update, answer, receive };
  /// What the numbers of Name stand for, in their order.
  static std::vector<std::string> names();

  static constexpr std::uint32_t kNoKey = ~std::uint32_t{0};
  static constexpr int kNobody = -1;

  struct Event {
    /// Seconds of the monotonic clock.
    double begin = 0;
    double end = 0;
    std::uint64_t bytes = 0;
    /// By keyNumber().
    std::uint32_t key = kNoKey;
    /// Of several together none.
    std::int32_t worker = kNobody;
    /// merge, update: pushes in it.
    std::uint32_t pushes = 0;
    /// 0: the receiving thread; else the pipeline, from 1.
    std::uint16_t lane = 0;
    std::uint8_t name = 0;
  };

  struct Taken {
    std::vector<Event> events;
    std::vector<std::string> keys;
    /// Events that there was no room for.
    std::uint64_t lost = 0;
    int pipelines = 0;
  };

  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Drops what was noted before.
  void start();
  void stop() { on_ = false; }
  Taken take();

  void setPipelines(int count);
  std::uint32_t keyNumber(const std::string& key);
  void add(const Event& event);

  static double now();

 private:
  /// Some seconds of a busy server, and 50 MB: a reader that is late loses events, not the server
  /// its memory.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 20;

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<std::string> keys_;
  std::uint64_t lost_ = 0;
  int pipelines_ = 0;
};

}  // namespace gradlink

// A trace of a server's work: its threads record events, unless a flag is off; readers take them
// out.
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
  /// The kind of an event; for messages `receive` plus the MessageType.
  enum Name : std::uint8_t { merge, update, answer, receive };
  static std::vector<std::string> names();

  static constexpr std::uint32_t kNoKey = ~std::uint32_t{0};
  static constexpr int kNobody = -1;

  struct Event {
    /// On the monotonic clock, in seconds.
    double begin = 0;
    double end = 0;
    std::uint64_t bytes = 0;
    std::uint32_t key = kNoKey;
    /// kNobody for several together.
    std::int32_t worker = kNobody;
    /// merge, update: the number of pushes.
    std::uint32_t pushes = 0;
    /// 0: the receiving thread; else the pipeline, from 1.
    std::uint16_t lane = 0;
    std::uint8_t name = 0;
  };

  struct Taken {
    std::vector<Event> events;
    std::vector<std::string> keys;
    /// Events dropped for lack of space.
    std::uint64_t lost = 0;
    int pipelines = 0;
  };

  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Drops earlier events.
  void start();
  void stop() { on_ = false; }
  Taken take();

  void setPipelines(int count);
  std::uint32_t keyNumber(const std::string& key);
  void add(const Event& event);

  static double now();

 private:
  /// Some seconds of a busy server, 50 MB: a slow reader loses events instead of using up memory.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 20;

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<std::string> keys_;
  std::uint64_t lost_ = 0;
  int pipelines_ = 0;
};

}  // namespace gradlink

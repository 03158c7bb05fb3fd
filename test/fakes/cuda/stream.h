// Streams: queues that really run beside each other, one thread each, and the clocks of simulated
// time that move with their work (see control.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "cuda/status.h"

namespace gradlink::fake {

class Capture;
class Context;

/// The latest simulated time the calling thread knows of: from what it waited for. Work it queues
/// starts no earlier. A thread's own, so that threads that have nothing to do with each other do
/// not change each other's times.
double hostTime();
void hostReached(double seconds);

/// A point in a stream: set once, when the stream comes to it.
class Mark {
 public:
  void set(double time);
  /// Blocks until it is set; its time.
  double wait();
  bool done() const;
  /// Of a mark that is set.
  double time() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
  double time_ = 0;
};

/// Where items of several streams go one after the other, each when the one before has ended: with
/// few of them (queues=N) streams that do not wait for one another do so all the same, as on GPUs
/// with CUDA_DEVICE_MAX_CONNECTIONS=N.
class HardwareQueue {
 public:
  /// In the order that items are queued in.
  std::uint64_t place();
  void await(std::uint64_t place);
  void next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t places_ = 0;
  std::uint64_t turn_ = 0;
};

/// What work sees of the stream that runs it.
struct Execution {
  Context& context;
  double now;
};

/// Moves execution.now on by the simulated time it takes. A status other than kOk breaks the
/// context.
using Work = std::function<Status(Execution&)>;

class Stream {
 public:
  /// Starts the thread; throws std::system_error where there is none to be had.
  static std::shared_ptr<Stream> start(Context& context);
  /// Waits for the threads of streams that are closed and have nothing left to do. Others may never
  /// end.
  static void joinFinished();
  /// The same at the end of the process, for the closed ones that are just about to finish, too.
  static void joinClosed();

  Context& context() const { return context_; }
  /// These wait where the queue is full.
  void push(Work work);
  void record(std::shared_ptr<Mark> mark);
  void waitFor(std::shared_ptr<Mark> mark);
  /// A mark after all that is queued now.
  std::shared_ptr<Mark> end();
  /// Whether all that was queued is done; the caller then knows the stream's time.
  bool idle();
  /// Takes no more work; the thread ends after the last.
  void close();

  /// The capture that the stream is in, and which lane of it; null when it is in none.
  struct Captured {
    std::shared_ptr<Capture> capture;
    std::size_t lane = 0;
  };
  Captured captured();
  void capture(Captured captured);

  /// For control.h: the driver was asked to queue something here.
  void countQueued();
  std::uint64_t queued() const { return queued_.load(); }
  static std::uint64_t queuedOnAll();

  explicit Stream(Context& context);

 private:
  struct Item {
    Work work;  // of no work: a mark is set, or waited for
    std::shared_ptr<Mark> set;
    std::shared_ptr<Mark> awaited;
    double queuedAt = 0;
    std::uint64_t place = 0;
  };
  void add(Item item);
  bool finished();
  bool finishing();
  void run();

  Context& context_;
  HardwareQueue* const queue_;
  std::atomic<std::uint64_t> queued_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable room_;
  std::deque<Item> items_;
  bool busy_ = false;
  bool closed_ = false;
  bool ended_ = false;  // the thread has left: marks are set at once
  double clock_ = 0;
  Captured captured_;
};

}  // namespace gradlink::fake

#include "measure/between_cores.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "core/window.h"
#include "measure/page_buffer.h"

namespace gradlink::measure {
namespace {

constexpr std::size_t kCrossingLine = 64;

void checkCrossing(const Communicator& comm, const BetweenCoresOptions& options) {
  const auto require = [](bool good, const std::string& message) {
    if (!good)
      throw Error(ErrorCode::invalidArgument, message).withOp("timeBetweenCores").stillUsable();
  };
  require(options.samples >= 1,
          "samples must be at least 1, got " + std::to_string(options.samples));
  require(options.warmup >= 0, "warmup must be at least 0, got " + std::to_string(options.warmup));
  require(options.distance >= 1 && options.distance < comm.size(),
          "distance must be from 1 to " + std::to_string(comm.size() - 1) + ", got " +
              std::to_string(options.distance));
}

/// One rank's arrays: one that another rank maps, and two private ones.
class CrossingArrays {
 public:
  CrossingArrays(Communicator& comm, const BetweenCoresOptions& options)
      : comm_(comm),
        call_{options.timeoutMs},
        rank_(comm.heldRanks().front()),
        reader_((rank_ + options.distance) % comm.size()),
        writer_((rank_ - options.distance + comm.size()) % comm.size()),
        bytes_(std::max(kCrossingLine,
                        (options.bytes + kCrossingLine - 1) / kCrossingLine * kCrossingLine)),
        in_(allocatePages(bytes_)),
        out_(allocatePages(bytes_)) {
    std::memset(in_.get(), 0, bytes_);
    WindowSpec spec;
    spec.count = bytes_;
    spec.dtype = DType::uint8;
    spec.initial = in_.get();
    spec.sources = {writer_};
    spec.destinations = {reader_};
    window_ = comm.openWindow(spec, call_);
    own_ = window_->data();
    seen_ = window_->seen(writer_);
    std::memset(in_.get(), contentOf(rank_), bytes_);
  }

  std::size_t bytes() const { return bytes_; }
  bool reached() const { return seen_ != nullptr; }
  void free() { window_->free(call_); }

  CrossingSeconds time(const BetweenCoresOptions& options, bool streaming) {
    CrossingSeconds seconds{};
    std::memset(out_.get(), 0, bytes_);
    for (int i = 0; i < options.warmup; ++i) sample(seconds, streaming);
    seconds = {};
    for (int i = 0; i < options.samples; ++i) sample(seconds, streaming);
    return seconds;
  }

  /// Bytes of the last readings that differ from the writer's.
  std::size_t wrong() const {
    const auto* const out = static_cast<const std::uint8_t*>(out_.get());
    return bytes_ - static_cast<std::size_t>(std::count(out, out + bytes_, contentOf(writer_)));
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Never 0.
  static std::uint8_t contentOf(int rank) { return static_cast<std::uint8_t>(1 + rank % 255); }

  /// Writes and reads alternate, so every read crosses between the cores.
  void sample(CrossingSeconds& seconds, bool streaming) {
    const auto put = [&] { copyMany({&own_, 1}, in_.get(), bytes_, streaming); };
    const auto get = [&] { copyBytes(out_.get(), seen_, bytes_); };
    timed(seconds, Crossing::put, true, put);
    timed(seconds, Crossing::get, true, get);
    timed(seconds, Crossing::putAlone, rank_ == 0, put);
    timed(seconds, Crossing::getAlone, writer_ == 0, get);
  }

  /// Data in the store buffer (4 KiB on some cores) has not crossed yet.
  static void drainStores() {
    // ThreadSanitizer does not support fences, and its timings are meaningless.
#ifndef __SANITIZE_THREAD__
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

  /// Times `body` after an untimed barrier.
  template <class Body>
  void timed(CrossingSeconds& seconds, Crossing crossing, bool takesPart, Body body) {
    comm_.barrier(call_);
    if (!takesPart) return;
    const auto start = Clock::now();
    body();
    drainStores();
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    double& best = seconds[static_cast<std::size_t>(crossing)];
    // Ignores times below the clock's resolution.
    if (elapsed.count() > 0 && (best == 0 || elapsed.count() < best)) best = elapsed.count();
  }

  Communicator& comm_;
  const CallOptions call_;
  const int rank_;
  const int reader_;
  const int writer_;
  const std::size_t bytes_;
  PageBuffer in_;
  PageBuffer out_;
  std::unique_ptr<Window> window_;
  void* own_ = nullptr;
  const void* seen_ = nullptr;
};

}  // namespace

BetweenCores timeBetweenCores(Communicator& comm, const BetweenCoresOptions& options) {
  checkCrossing(comm, options);
  CrossingArrays arrays(comm, options);
  BetweenCores result;
  result.bytes = arrays.bytes();
  // Windows use memory for all ranks or messages for all.
  if (arrays.reached()) {
    result.plain = arrays.time(options, false);
    result.wrong += arrays.wrong();
    result.streaming = arrays.time(options, true);
    result.wrong += arrays.wrong();
  }
  arrays.free();
  return result;
}

}  // namespace gradlink::measure

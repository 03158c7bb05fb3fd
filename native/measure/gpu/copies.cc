#include "measure/gpu/copies.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "measure/gpu/buffers.h"
#include "measure/gpu/peers.h"
#include "measure/gpu/stream_hold.h"

namespace gradlink::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// Larger staged copies are queued in pieces: behind a waiting kernel the host would block forever.
/// At staged rates the host's time does not matter.
constexpr std::size_t kMostStagedBehindKernel = 64 << 10;
/// Disturbing copies outlast the measured ones.
constexpr int kDisturbingLoops = 2;
constexpr int kBlock = 256;

[[noreturn]] void refuseCopies(const std::string& message) {
  throw Error(ErrorCode::invalidArgument, message).withOp("timeGpuCopies").stillUsable();
}

void check(const GpuCopiesOptions& options) {
  if (options.copies.empty()) refuseCopies("expected at least one copy, got none");
  if (options.measured < 1 || options.measured > options.copies.size()) {
    refuseCopies("measured must be 1.." + std::to_string(options.copies.size()) + ", got " +
                 std::to_string(options.measured));
  }
  if (options.bytes == 0) refuseCopies("bytes must be at least 1, got 0");
  if (options.warmup < 0 || options.loops < 1 || options.samples < 1) {
    refuseCopies("expected no negative warmup, at least one loop and one sample");
  }
  for (const GpuCopy& copy : options.copies) {
    if (copy.by != copy.from && copy.by != copy.to) {
      refuseCopies("gpu:" + std::to_string(copy.by) +
                   " is neither the source nor the target of its copy");
    }
  }
}

/// One copy with its memory, stream and events.
class Lane {
 public:
  Lane(const GpuCopy& copy, const GpuCopiesOptions& options, unsigned kernelsBeside)
      : copy_(copy),
        device_(cuda::Device::get(copy.by)),
        stream_(device_),
        ready_(device_, false),
        start_(device_, true),
        stop_(device_, true),
        source_(copy.from, copy.by, options.bytes, options.affinity),
        target_(copy.to, copy.by, options.bytes, options.affinity) {
    if (copy.kernel && kernelsBeside > 1) {
      // Concurrent copies of one GPU share its multiprocessors.
      const int resident = device_.threadsOfMultiprocessor() / kBlock;
      const auto most = static_cast<unsigned>(device_.multiprocessors() * resident);
      blocks_ = std::max(1u, most / kernelsBeside);
    }
    // Otherwise loaded behind a spinning kernel, forever.
    cuda::Device* const device = &device_;
    cuda::loadKernels({&device, 1}, {"diagnostics"});
  }

  void copyOnce() {
    void* const to = target_.data();
    const void* const from = source_.data();
    const std::size_t bytes = source_.bytes();
    if (copy_.kernel) {
      cuda::copy(stream_, to, from, bytes, blocks_);
    } else if (copy_.from >= 0 && copy_.to >= 0 && copy_.from != copy_.to) {
      stream_.copyPeer(to, cuda::Device::get(copy_.to), from, cuda::Device::get(copy_.from), bytes);
    } else {
      stream_.copy(to, from, bytes);
    }
  }
  void copyTimes(int times) {
    for (int i = 0; i < times; ++i) copyOnce();
  }

  const GpuCopy& copy() const { return copy_; }
  cuda::Stream& stream() { return stream_; }
  cuda::Event& ready() { return ready_; }
  cuda::Event& start() { return start_; }
  cuda::Event& stop() { return stop_; }
  const GpuBuffer& source() const { return source_; }
  const GpuBuffer& target() const { return target_; }
  bool isNear() const { return source_.isNear() || target_.isNear(); }

 private:
  GpuCopy copy_;
  cuda::Device& device_;
  cuda::Stream stream_;
  cuda::Event ready_;
  cuda::Event start_;
  cuda::Event stop_;
  GpuBuffer source_;
  GpuBuffer target_;
  unsigned blocks_ = 0;
};

class GpuCopiesMeasurement {
 public:
  explicit GpuCopiesMeasurement(const GpuCopiesOptions& options)
      : options_(options), peers_(pairsOf(options), options.peerAccess) {
    for (const GpuCopy& copy : options.copies) {
      const bool direct = isDirect(copy);
      if (copy.kernel && !direct) {
        throw Error(ErrorCode::unsupported,
                    "the kernels of gpu:" + std::to_string(copy.by) +
                        " cannot access the memory of gpu:" +
                        std::to_string(copy.by == copy.from ? copy.to : copy.from))
            .withOp("timeGpuCopies")
            .stillUsable();
      }
      result_.direct.push_back(direct);
      const bool staged = !direct && copy.from >= 0 && copy.to >= 0 && copy.from != copy.to;
      if (staged && options.bytes > kMostStagedBehindKernel) holds_ = false;
      const auto beside = std::ranges::count_if(options.copies, [&](const GpuCopy& other) {
        return other.kernel && other.by == copy.by;
      });
      lanes_.push_back(std::make_unique<Lane>(copy, options, static_cast<unsigned>(beside)));
      result_.near.push_back(lanes_.back()->isNear());
    }
    end_ = std::make_unique<cuda::Event>(lanes_.front()->stream().device(), true);
    result_.seconds.resize(options.measured);
  }

  GpuCopiesResult run() {
    const int numbers = static_cast<int>(lanes_.size());
    for (int i = 0; i < numbers && options_.verify; ++i) {
      checker_.fill(lanes_[i]->source(), i, numbers);
    }
    for (int sample = 0; sample < options_.samples; ++sample) {
      for (const auto& lane : lanes_) {
        if (options_.verify) checker_.spoil(lane->target());
      }
      takeSample();
      if (options_.hostTimes) timeByHost();
      for (int i = 0; i < numbers && options_.verify; ++i) {
        const std::uint64_t wrong = checker_.countWrong(lanes_[i]->target(), i, numbers);
        result_.wrong += wrong;
        if (wrong > 0 && !result_.firstWrong) {
          result_.firstWrong = checker_.firstWrong(lanes_[i]->target(), i, numbers);
        }
      }
    }
    if (options_.health) readHealth();
    return std::move(result_);
  }

 private:
  static std::vector<PeerAccess::Pair> pairsOf(const GpuCopiesOptions& options) {
    check(options);
    std::vector<PeerAccess::Pair> pairs;
    for (const GpuCopy& copy : options.copies) {
      if (copy.from >= 0 && copy.to >= 0 && copy.from != copy.to) {
        pairs.emplace_back(copy.from, copy.to);
      }
    }
    return pairs;
  }

  bool isDirect(const GpuCopy& copy) const {
    const int other = copy.by == copy.from ? copy.to : copy.from;
    return other < 0 || other == copy.by || peers_.reaches(copy.by, other);
  }

  void takeSample() {
    hold_.begin();
    try {
      queueSample();
    } catch (...) {
      hold_.end();
      finish();
      throw;
    }
    const bool heldToTheEnd = hold_.end();
    finish();
    // The copies have ended and the memory is free, so this is no timeout, which would give it up.
    if (holds_ && !heldToTheEnd) {
      char seconds[16];
      std::snprintf(seconds, sizeof(seconds), "%g", hold_.seconds());
      throw Error(ErrorCode::system,
                  "queueing the copies took longer than the " + std::string(seconds) +
                      " s for which their streams are held: use fewer copies a sample, since a "
                      "stream queues about a thousand")
          .withOp("timeGpuCopies")
          .stillUsable();
    }
    for (std::size_t i = 0; i < options_.measured; ++i) {
      const double seconds = lanes_[i]->stop().secondsSince(lanes_[i]->start());
      result_.seconds[i].push_back(seconds / options_.loops);
    }
    const double span = end_->secondsSince(lanes_.front()->start());
    result_.spanSeconds.push_back(span / options_.loops);
  }

  void queueSample() {
    for (const auto& lane : lanes_) {
      cuda::Stream& stream = lane->stream();
      if (holds_) hold_.hold(stream);
      lane->copyTimes(options_.warmup);
    }
    // The first lane begins when all are warm, the others with it.
    Lane& first = *lanes_.front();
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      lanes_[i]->ready().record(lanes_[i]->stream());
      first.stream().wait(lanes_[i]->ready());
    }
    first.start().record(first.stream());
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      lanes_[i]->stream().wait(first.start());
      lanes_[i]->start().record(lanes_[i]->stream());
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const bool measured = i < options_.measured;
      const Clock::time_point began = Clock::now();
      lanes_[i]->copyTimes(measured ? options_.loops : options_.loops * kDisturbingLoops);
      if (i == 0) result_.issueSeconds.push_back(perCopy(Clock::now() - began));
      lanes_[i]->stop().record(lanes_[i]->stream());
    }
    for (std::size_t i = 1; i < options_.measured; ++i) first.stream().wait(lanes_[i]->stop());
    end_->record(first.stream());
  }

  /// The stream is not held, and nothing else runs.
  void timeByHost() {
    Lane& first = *lanes_.front();
    const Deadline deadline = Deadline::in(options_.timeoutMs);
    const Clock::time_point began = Clock::now();
    for (int i = 0; i < options_.loops; ++i) {
      first.copyOnce();
      cuda::await([&] { return first.stream().done(); }, deadline, "a copy");
    }
    result_.hostSeconds.push_back(perCopy(Clock::now() - began));
  }

  double perCopy(std::chrono::duration<double> together) const {
    return together.count() / options_.loops;
  }

  void finish() {
    const Deadline deadline = Deadline::in(options_.timeoutMs);
    for (const auto& lane : lanes_) {
      cuda::await([&] { return lane->stream().done(); }, deadline, "a copy");
    }
  }

  /// Clocks and links slow down shortly after work ends, so work runs meanwhile.
  void readHealth() {
    for (const auto& lane : lanes_) lane->copyTimes(options_.loops);
    std::set<int> gpus;
    for (const GpuCopy& copy : options_.copies) gpus.insert({copy.from, copy.to, copy.by});
    gpus.erase(kHostMemory);
    for (const int gpu : gpus) {
      auto health = cuda::gpuHealth(cuda::pciBusIdOf(gpu), cuda::Links::counted);
      if (health) result_.health.emplace_back(gpu, std::move(*health));
    }
    finish();
  }

  const GpuCopiesOptions options_;
  /// Whether all begin together once everything is queued, behind a kernel.
  bool holds_ = true;
  /// Declared before the lanes, so restored after them.
  PeerAccess peers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<cuda::Event> end_;
  GpuChecker checker_;
  StreamHold hold_;
  GpuCopiesResult result_;
};

}  // namespace

GpuCopiesResult timeGpuCopies(const GpuCopiesOptions& options) {
  auto measurement = std::make_unique<GpuCopiesMeasurement>(options);
  try {
    return measurement->run();
  } catch (const Error& error) {
    // Freeing memory in use would wait for work that never ends, so it is leaked.
    if (error.code == ErrorCode::timeout) static_cast<void>(measurement.release());
    throw;
  }
}

}  // namespace gradlink::measure

// Fuses sums of small arrays issued in a row: behind a running call, or within a short time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// A sum or a neighbor average of arrays in host memory.
struct FusedCall {
  std::vector<const void*> in;
  std::vector<void*> out;
  std::size_t count = 0;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  /// Empty for an allReduce, else one for each held rank.
  std::vector<Neighborhood> neighborhoods;
  std::string name;
  double timeoutMs = -1;
  /// Called once on the calls' thread before the call runs; false: it was cancelled.
  std::function<bool()> begin = [] { return true; };

  std::size_t bytes() const { return count * sizeOf(dtype); }
  /// Valid while this object lives and does not move.
  CallOptions options() const { return {timeoutMs, name.empty() ? nullptr : name.c_str()}; }
  bool fitsTo(const FusedCall& other) const;
  void run(Communicator&) const;
};

/// The calls of one communicator. Ranks agree on which of them to fuse, as they may have issued
/// different numbers of the same calls so far. All ranks use the same limits.
class Fusion {
 public:
  struct Entry {
    FusedCall call;
    std::size_t segment = 0;
    bool begun = false;
    bool done = false;
    std::exception_ptr error;
  };

  /// The most bytes of a fused call, and so of its parts; 0: off. The first call waits up to
  /// `wait`.
  void setLimits(std::size_t mostBytes, std::chrono::microseconds wait);
  bool isOn() const { return mostBytes_ > 0; }
  bool takes(std::size_t bytes) const { return bytes > 0 && bytes <= mostBytes_; }

  // Called by the thread that issues calls.

  /// Another kind of call was issued: fusion does not cross it.
  void boundary();
  /// The segment that a call issued now belongs to.
  std::size_t segment() const { return segment_; }
  std::shared_ptr<Entry> add(FusedCall call, std::size_t segment);

  /// Called on the calls' thread for each entry in order; throws the entry's error.
  void finish(Communicator&, Entry&);

 private:
  void runFront(Communicator&);
  /// How many calls at the front can be fused here, at least one. `complete`: no more can join.
  std::size_t together(bool& complete) const;
  /// The same after the wait, without cancelled calls.
  std::size_t awaitFront();
  CallOptions frontOptions();
  std::vector<std::shared_ptr<Entry>> take(std::size_t calls);
  void runTogether(Communicator&, const std::vector<std::shared_ptr<Entry>>& taken);

  std::size_t mostBytes_ = 0;
  std::chrono::microseconds wait_{0};
  std::size_t segment_ = 0;
  std::mutex mutex_;
  std::condition_variable issued_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  std::vector<std::vector<std::byte>> scratch_;
};

}  // namespace gradlink

// Sums of small arrays that were issued one after the other go as one: what waits while an earlier
// call runs, and what comes within a short time.
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

/// A sum or an average with neighbors, whose arrays may lie anywhere in the host's memory.
struct FusedCall {
  std::vector<const void*> in;
  std::vector<void*> out;
  std::size_t count = 0;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  /// Empty: an allReduce. Else one for each held rank.
  std::vector<Neighborhood> neighborhoods;
  /// Empty: none.
  std::string name;
  double timeoutMs = -1;
  /// Asked once before the call is made, on the thread of the calls; false: it was dropped.
  std::function<bool()> begin = [] { return true; };

  std::size_t bytes() const { return count * sizeOf(dtype); }
  /// Good for as long as this one stays where it is.
  CallOptions options() const { return {timeoutMs, name.empty() ? nullptr : name.c_str()}; }
  bool fitsTo(const FusedCall& other) const;
  void run(Communicator&) const;
};

/// The calls of one communicator. Which of them go together is agreed upon: ranks may have issued
/// more or fewer of the same calls so far. All ranks have the same limits.
class Fusion {
 public:
  struct Entry {
    FusedCall call;
    std::size_t segment = 0;
    bool begun = false;
    bool done = false;
    std::exception_ptr error;
  };

  /// Calls of up to `mostBytes` are for this class, and so many go together at most; 0: none. The
  /// first waits for others for up to `wait`.
  void setLimits(std::size_t mostBytes, std::chrono::microseconds wait);
  bool isOn() const { return mostBytes_ > 0; }
  bool takes(std::size_t bytes) const { return bytes > 0 && bytes <= mostBytes_; }

  // From the thread that issues calls.

  /// Something else is issued: nothing before goes together with anything behind.
  void boundary();
  /// Before what turns out to be a call of this class: where it belongs.
  std::size_t segment() const { return segment_; }
  std::shared_ptr<Entry> add(FusedCall call, std::size_t segment);

  /// On the thread of the calls, for each entry in order: returns when it is done, throws what
  /// ended it.
  void finish(Communicator&, Entry&);

 private:
  void runFront(Communicator&);
  /// How many calls at the front go together here; at least one. `complete`: no more can come.
  std::size_t together(bool& complete) const;
  /// The same after the wait, less what was dropped.
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

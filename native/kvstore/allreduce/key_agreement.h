// How the workers of an `allreduce` store choose the next sums. Each announces its submitted
// operations; those that all have announced are ready, in the same order everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/deadline.h"
#include "core/kernels/dtype.h"
#include "core/kernels/partial.h"

namespace gradlink {

/// The kind of an announcement. step: a push whose optimizer steps a part of the key on each
/// worker. states: gathers the states of the parts.
enum class SumKind : std::uint8_t { init = 0, push = 1, barrier = 2, step = 3, states = 4 };

/// In place of a number of rows: the array is whole.
inline constexpr std::uint32_t kWholeArray = ~std::uint32_t{0};
/// The same for a sum of several devices' halves, which stays wider until all are summed.
inline constexpr std::uint32_t kWiderArray = kWholeArray - 1;

/// An operation that needs all workers. The n-th of a key here belongs to the n-th elsewhere.
struct Announcement {
  std::uint32_t key = 0;
  std::int32_t priority = 0;
  std::uint64_t count = 0;
  std::uint64_t rowLength = 1;
  /// The key name's fingerprint: detects different orders of definition.
  std::uint64_t name = 0;
  /// This worker's unique rows; the others may have other numbers.
  std::uint32_t rows = kWholeArray;
  SumKind kind = SumKind::push;
  DType dtype = DType::float32;
  /// step: how often the update rule was changed before it.
  std::uint16_t changes = 0;
  /// push, step: the fingerprint of the update rule.
  std::uint64_t rule = 0;
};
static_assert(sizeof(Announcement) == 48);

/// An operation that all workers have announced.
struct ReadySum {
  Announcement announced;
  /// Rows of each worker; empty: summed as whole arrays, even if some workers bring rows.
  std::vector<std::uint32_t> rows;
  /// The type of the sum: wider than the key's if a worker brings a wider array.
  Partial partial;
};

inline constexpr std::uint32_t kBarrierKey = ~std::uint32_t{0};

/// Used by one thread. All workers must call exchange() equally often.
class Agreement {
 public:
  /// `comm` holds one rank and outlives the agreement.
  explicit Agreement(Communicator& comm);

  /// Sent with the next exchanges.
  void announce(const Announcement& announcement) { unsent_.push_back(announcement); }
  /// From the next exchange on nobody waits for this worker.
  void leave() { leaving_ = true; }

  /// Whether an announcement of this worker is unsent or not ready.
  bool hasPending() const { return !unsent_.empty() || own_ != 0; }
  bool everybodyLeft() const;

  /// Exchanges announcements; waits for the others up to `timeoutMs`. Throws the communicator's
  /// errors, and a mismatch on all workers if two announce different things for the same operation.
  void exchange(double timeoutMs);
  /// Ready operations, at most one for each key.
  std::vector<ReadySum> takeReady();

  /// The lowest worker that has not left: its value initializes a key.
  int root() const;
  /// Throws a timeout naming the missing workers if an operation of this one has waited longer.
  void checkTimeout(double timeoutMs, const std::vector<std::string>& names) const;

 private:
  static constexpr std::size_t kEntries = 20;
  struct Frame {
    std::uint32_t entries = 0;
    std::uint32_t left = 0;
    std::uint64_t unused[7] = {};
    Announcement list[kEntries];
  };
  static_assert(sizeof(Frame) == 1024);

  /// The n-th operation of a key, until it is ready.
  struct Slot {
    Announcement announced;
    int by = 0;  // the first worker that announced it
    std::uint64_t order = 0;
    Deadline::Clock::time_point since;
    std::vector<std::uint32_t> rows = {};  // by worker; empty until one brings rows
    bool whole = false;                    // some worker brings a whole array
    bool wider = false;
  };
  struct Line {
    std::uint64_t base = 0;            // operations that have been ready
    std::deque<Slot> slots;            // the operations after those
    std::vector<std::uint64_t> count;  // operations announced by each worker
  };

  void take(int worker, const Announcement&);
  void takeRows(Slot& slot, int worker, const Announcement&) const;
  bool ready(const Line& line) const;

  Communicator& comm_;
  const int rank_;
  const int size_;
  bool leaving_ = false;
  std::deque<Announcement> unsent_;
  std::size_t own_ = 0;  // announced and not ready
  std::vector<bool> left_;
  std::map<std::uint32_t, Line> lines_;
  std::uint64_t order_ = 0;
  Frame sent_;
  std::vector<Frame> received_;
};

}  // namespace gradlink

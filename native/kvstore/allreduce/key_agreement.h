// What the workers of an `allreduce` store sum next. Each announces what has been submitted to it;
// what all have announced is ready, in an order that is the same everywhere.
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

/// What an announcement is of.
/// step: a push whose optimizer steps a part of the key on each worker. states: what each keeps for
/// its parts is gathered.
enum class SumKind : std::uint8_t { init = 0, push = 1, barrier = 2, step = 3, states = 4 };

/// Instead of a number of rows: the array is whole.
inline constexpr std::uint32_t kWholeArray = ~std::uint32_t{0};
/// The same, and summed of several devices' halves: it is kept wider until all are summed.
inline constexpr std::uint32_t kWiderArray = kWholeArray - 1;

/// An operation that needs all workers. The n-th of a key here goes with the n-th of the key
/// elsewhere.
struct Announcement {
  std::uint32_t key = 0;
  std::int32_t priority = 0;
  std::uint64_t count = 0;
  std::uint64_t rowLength = 1;
  /// Of the key's name: workers that define keys in different orders must not sum the wrong ones.
  std::uint64_t name = 0;
  /// Rows that this worker's push brings, each once. Its own: the others may bring other numbers.
  std::uint32_t rows = kWholeArray;
  SumKind kind = SumKind::push;
  DType dtype = DType::float32;
  /// step: how often what steps was changed before it.
  std::uint16_t changes = 0;
  /// push, step: of what steps it here, the optimizer with its options and rate.
  std::uint64_t rule = 0;
};
static_assert(sizeof(Announcement) == 48);

/// What all workers have announced.
struct ReadySum {
  Announcement announced;
  /// How many rows each worker brings; empty: the arrays are whole, of those who bring rows too.
  std::vector<std::uint32_t> rows;
  /// What the sum is kept in: wider than the key where somebody brings a wider array.
  Partial partial;
};

/// The key of barriers.
inline constexpr std::uint32_t kBarrierKey = ~std::uint32_t{0};

/// Used by one thread. All workers must call exchange() equally often.
class Agreement {
 public:
  /// `comm` holds one rank and outlives the agreement.
  explicit Agreement(Communicator& comm);

  /// Tells the others with the next exchanges.
  void announce(const Announcement& announcement) { unsent_.push_back(announcement); }
  /// From the next exchange on nobody waits for this worker.
  void leave() { leaving_ = true; }

  /// Whether something announced here is not ready yet, or still has to be told.
  bool hasPending() const { return !unsent_.empty() || own_ != 0; }
  bool everybodyLeft() const;

  /// One round of telling, within `timeoutMs` of waiting for the others. Throws what the
  /// communicator throws; mismatch (on all workers) where two announce different things as the same
  /// operation.
  void exchange(double timeoutMs);
  /// What is ready now, at most one operation a key; empty when nothing is.
  std::vector<ReadySum> takeReady();

  /// The lowest worker that has not left: its value is the first of a key.
  int root() const;
  /// Throws timeout naming the workers that did not come, where an operation that this worker
  /// announced has waited for them longer than this.
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
    std::vector<std::uint32_t> rows = {};  // by worker; none until one brings rows
    bool whole = false;                    // somebody brings all
    bool wider = false;                    // and wider
  };
  struct Line {
    std::uint64_t base = 0;            // operations that were ready
    std::deque<Slot> slots;            // the following ones
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
  std::size_t own_ = 0;  // told and not ready
  std::vector<bool> left_;
  std::map<std::uint32_t, Line> lines_;
  std::uint64_t order_ = 0;
  Frame sent_;
  std::vector<Frame> received_;
};

}  // namespace gradlink

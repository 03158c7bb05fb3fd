// Chooses how ranks stage data, from recent measurements of similar calls: the way through the
// rings, with plain or streaming stores.
//
// The cost is the work of all ranks, writers and readers. Each rank announces its cost of a
// measured call with the next call, and all apply the same rule to the same sums. So they choose
// alike without further messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/call.h"
#include "core/kernels/measured_choice.h"
#include "core/kernels/similar_calls.h"
#include "shm/session.h"

namespace gradlink::shm {

/// In the order in which they are tried. Data sent with announcements uses the first two only.
enum Way : int {
  /// Through all slots: by its next turn a line has left the readers' caches.
  kDeep,
  /// The same with streaming stores.
  kStreaming,
  /// Through a few slots, which stay in a core's second-level cache.
  kShallow,
  /// An all-reduce of two: both ranks sum every chunk whole. As many bytes cross between the cores,
  /// with one wait a chunk instead of two.
  kWhole,
};

class StagingWork {
 public:
  StagingWork() = default;
  explicit StagingWork(const MeasuredChoice& choice)
      : ways_{static_cast<Way>(choice.chosen()), static_cast<Way>(choice.way())},
        measured_(choice.measured()) {}

  /// The way of the call's beginning, or of all of a short call.
  Way first() const { return ways_[1]; }
  /// The way of the rest: trying another way in a whole long call would cost too much.
  Way rest() const { return ways_[0]; }
  bool probing() const { return first() != rest(); }
  bool measured() const { return measured_; }

  /// Runs and times this rank's work on a part; must not include waits.
  template <class Body>
  void timed(Way way, Body body) {
    if (!measured_) return body();
    const auto start = Clock::now();
    body();
    seconds_[way != rest()] += std::chrono::duration<float>(Clock::now() - start).count();
  }
  /// Of the rest, and of the tried way.
  float seconds(bool tried) const { return seconds_[tried]; }

 private:
  using Clock = std::chrono::steady_clock;

  Way ways_[2] = {kDeep, kDeep};
  bool measured_ = false;
  float seconds_[2] = {0, 0};
};

class StagingStyles {
 public:
  /// Smaller calls are not worth measuring.
  static constexpr std::size_t kFewestBytes = 2048;

  explicit StagingStyles(Session& session) : session_(session) {}

  /// Plans the next call of up to `bytes` bytes a rank, with `ways` ways to choose from. Changes
  /// nothing, so ranks still agree if their calls turn out to differ.
  StagingWork plan(const Shape& shape, std::size_t bytes, int ways) const;
  /// Call after the ranks have met in `call`, for their reports. `probed`: the share of the trial.
  void met(const Shape& shape, std::size_t bytes, int ways, std::uint32_t call, float probed = 1);
  /// Call at the end.
  void spent(const StagingWork& work);

 private:
  Session& session_;
  SimilarCalls<MeasuredChoice> choices_;
  /// The measured call to be reported with the next; 0: none.
  std::uint32_t reported_ = 0;
  /// Its ways (of the rest, and the tried one), and their bytes.
  int ways_[2] = {0, 0};
  float bytes_[2] = {0, 0};
};

}  // namespace gradlink::shm

// How the ranks of a communicator move what others read next, as measured of late for calls like
// the one at hand: by which way through the rings, with stores that are plain or past the caches.
//
// What counts is the work of all ranks, writers and readers. So each announces with its next call
// what a measured one cost it, and all feed the same sums to the same rule: they choose alike
// without a word more.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/call.h"
#include "core/kernels/measured_choice.h"
#include "shm/session.h"

namespace gradlink::shm {

/// In the order in which they are tried. What travels with the announcement knows the first two.
enum Way : int {
  /// Through all of the rings: by its next turn a line has left the caches of who read it.
  kDeep,
  /// The same, past the caches.
  kStreaming,
  /// Through a few places, so that all stays in a core's second-level cache.
  kShallow,
  /// Of an all-reduce of two: each rank sums the whole of every chunk. As many bytes cross between
  /// the cores, with one wait a chunk instead of two.
  kWhole,
};

/// One rank's part of one call.
class StagingWork {
 public:
  /// kDeep, not measured.
  StagingWork() = default;
  explicit StagingWork(const MeasuredChoice& choice)
      : ways_{static_cast<Way>(choice.chosen()), static_cast<Way>(choice.way())},
        measured_(choice.measured()) {}

  /// Of the call's beginning, or of all of a short one.
  Way first() const { return ways_[1]; }
  /// Of the rest: all of a long call would cost too much where the first way is only tried.
  Way rest() const { return ways_[0]; }
  bool probing() const { return first() != rest(); }
  bool measured() const { return measured_; }

  /// Runs what this rank does for a part that goes one of these ways; waiting is not to be in it.
  template <class Body>
  void timed(Way way, Body body) {
    if (!measured_) return body();
    const auto start = Clock::now();
    body();
    seconds_[way != rest()] += std::chrono::duration<float>(Clock::now() - start).count();
  }
  /// Of the rest, and of what was tried.
  float seconds(bool tried) const { return seconds_[tried]; }

 private:
  using Clock = std::chrono::steady_clock;

  Way ways_[2] = {kDeep, kDeep};
  bool measured_ = false;
  float seconds_[2] = {0, 0};
};

class StagingStyles {
 public:
  /// Fewer bytes than this of a rank are not worth it.
  static constexpr std::size_t kFewestBytes = 2048;

  explicit StagingStyles(Session& session) : session_(session) {}

  /// For the next call, with up to `bytes` bytes a rank, that knows so many ways. Alters nothing,
  /// so that the ranks still agree when they turn out to have made different calls.
  StagingWork plan(const Shape& shape, std::size_t bytes, int ways) const;
  /// After the ranks have met in `call` for what was planned: takes in what they reported.
  /// `probed`: the share of the call that goes the first way where another one is tried.
  void met(const Shape& shape, std::size_t bytes, int ways, std::uint32_t call, float probed = 1);
  /// At the call's end.
  void spent(const StagingWork& work);

 private:
  /// What was learned of calls alike. Unlike ones that fall on the same place begin afresh.
  struct Entry {
    std::uint32_t key = 0;
    MeasuredChoice choice;
  };
  static std::size_t placeOf(std::uint32_t key) { return (key * 0x9e3779b1u) >> 26; }

  Session& session_;
  std::array<Entry, 64> entries_;
  /// The measured call whose costs the ranks tell with their next; 0: none.
  std::uint32_t reported_ = 0;
  /// Its ways, the rest's and what was tried, and the bytes that went each.
  int ways_[2] = {0, 0};
  float bytes_[2] = {0, 0};
};

}  // namespace gradlink::shm

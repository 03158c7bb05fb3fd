// How the ranks of a communicator store what others read next: plain or past the caches, as
// measured of late for calls like the one at hand.
//
// What counts is the work of all ranks, writers and readers. So each announces with its next call
// what a measured one cost it, and all feed the same sums to the same rule: they choose alike
// without a word more.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/call.h"
#include "core/kernels/store_style.h"
#include "shm/session.h"

namespace gradlink::shm {

/// One rank's part of one call.
class StagingWork {
 public:
  /// Chunks of a call that try the style that is not in use: all of a long call would cost too
  /// much.
  static constexpr std::uint32_t kProbedChunks = 8;

  /// Plain stores, not measured.
  StagingWork() = default;
  explicit StagingWork(const StoreStyle& style)
      : streaming_(style.streaming()), probing_(style.probing()), measured_(style.measured()) {}

  bool streaming(std::uint32_t chunk = 0) const {
    return streaming_ != (probing_ && chunk >= kProbedChunks);
  }
  bool measured() const { return measured_; }

  /// Runs what this rank does for a chunk; waiting is not to be in it.
  template <class Body>
  void timed(std::uint32_t chunk, Body body) {
    if (!measured_) return body();
    const auto start = Clock::now();
    body();
    seconds_[streaming(chunk)] += std::chrono::duration<float>(Clock::now() - start).count();
  }
  float seconds(bool streaming) const { return seconds_[streaming]; }

 private:
  using Clock = std::chrono::steady_clock;

  bool streaming_ = false;
  bool probing_ = false;
  bool measured_ = false;
  float seconds_[2] = {0, 0};
};

class StagingStyles {
 public:
  /// Fewer bytes than this of a rank are not worth it.
  static constexpr std::size_t kFewestBytes = 2048;

  explicit StagingStyles(Session& session) : session_(session) {}

  /// For the next call, with up to `bytes` bytes a rank. Alters nothing, so that the ranks still
  /// agree when they turn out to have made different calls.
  StagingWork plan(const Shape& shape, std::size_t bytes) const;
  /// After the ranks have met in `call` for what was planned: takes in what they reported.
  void met(const Shape& shape, std::size_t bytes, std::uint32_t call, std::uint32_t chunks = 1);
  /// At the call's end.
  void spent(const StagingWork& work);

 private:
  /// What was learned of calls alike. Unlike ones that fall on the same place begin afresh.
  struct Entry {
    std::uint32_t key = 0;
    StoreStyle style;
  };
  static std::size_t placeOf(std::uint32_t key) { return (key * 0x9e3779b1u) >> 26; }

  Session& session_;
  std::array<Entry, 64> entries_;
  /// The measured call whose costs the ranks tell with their next; 0: none.
  std::uint32_t reported_ = 0;
  /// Its bytes in each style.
  float bytes_[2] = {0, 0};
};

}  // namespace gradlink::shm

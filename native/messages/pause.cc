#include "messages/pause.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace gradlink::messages {
namespace {

using std::chrono::nanoseconds;

/// A look takes some 50 to 300 ns. With a core for each rank, spinning is cheapest; with shared
/// cores, the awaited rank may need this one.
constexpr std::uint32_t kLooksWithOwnCore = 2000;
constexpr std::uint32_t kLooksOversubscribed = 50;

/// Yielding costs 0.3 us without competition, and lets a rank on the same core run.
constexpr nanoseconds kYielding = std::chrono::microseconds(500);
/// A sleep is this share of the wait so far, up to kLongest: idle ranks look 500 times a second.
constexpr int kShare = 8;
constexpr nanoseconds kLongest = std::chrono::milliseconds(2);
/// How often the other conditions are checked while yielding.
constexpr std::uint32_t kRest = 64;

/// Whether this host has a core for each of its ranks, as far as the launcher says.
bool haveOwnCores() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE",
                           "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "LOCAL_WORLD_SIZE", "WORLD_SIZE"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    return std::strtol(text, nullptr, 10) <= sysconf(_SC_NPROCESSORS_ONLN);
  }
  return true;
}

}  // namespace

std::uint32_t Pause::mostLooks() {
  static const std::uint32_t looks = haveOwnCores() ? kLooksWithOwnCore : kLooksOversubscribed;
  return looks;
}

nanoseconds Pause::nap() {
  if (++looks_ < most_) return nanoseconds(0);
  const auto now = Deadline::Clock::now();
  if (looks_ == most_) since_ = now;
  const nanoseconds waited = now - since_;
  if (waited < kYielding) {
    sched_yield();
    return nanoseconds(0);
  }
  return std::min(waited / kShare, kLongest);
}

bool Pause::slow() {
  const auto now = Deadline::Clock::now();
  if (looks_ == most_) since_ = now;
  const nanoseconds waited = now - since_;
  if (waited < kYielding) {
    sched_yield();
    return looks_ % kRest == 0;
  }
  std::this_thread::sleep_for(std::min(waited / kShare, kLongest));
  return true;
}

}  // namespace gradlink::messages

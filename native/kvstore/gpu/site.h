// Where a store on GPUs keeps its values and computes: on the GPUs (gpu/device_site.h), in the
// host's memory (gpu/host_site.h), or on servers (gpu_dist_site.h). The engine decides what is done
// when; a site does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/gpu/key.h"

namespace gradlink {

/// Units under way together.
class InFlight {
 public:
  enum class Progress : std::uint8_t { onDevice, elsewhere, done };

  InFlight() = default;
  virtual ~InFlight() = default;
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Looks, and begins what can begin; `elsewhere`: it waits for something that wakes the engine.
  /// What it throws is the error of its units.
  virtual Progress advance() = 0;

  /// Given once it is made: what fails before leaves them with the engine.
  std::vector<std::unique_ptr<GpuUnit>> units;
  /// The engine's: of all units.
  std::size_t bytes = 0;
};

using InFlightList = std::vector<std::unique_ptr<InFlight>>;

/// All of it is called by the engine's thread, except where it says otherwise.
class GpuSite {
 public:
  virtual ~GpuSite() = default;
  GpuSite(const GpuSite&) = delete;
  GpuSite& operator=(const GpuSite&) = delete;

  /// Before anything else is. What it throws is the error of everything that follows.
  virtual void open() {}
  /// Whether nothing else of its key may begin before this unit is done; else the streams keep the
  /// order.
  virtual bool blocksKey(const GpuUnit&) const = 0;
  /// Whether pulls that wait behind a push may become one unit with it, so that it is done when
  /// they are.
  virtual bool joinsPulls() const { return true; }
  /// What one round moves at most, but for a single larger key: long beside what beginning it
  /// costs, short enough that an urgent key need not wait long.
  virtual std::size_t roundBytes() const = 0;
  /// What the first round moves at most when nothing is under way, each after it several times as
  /// much, so that the devices are busy while the rest is still being planned. Where it is less
  /// than roundBytes(), few rounds are under way: a pull that comes meanwhile costs less with its
  /// push.
  virtual std::size_t firstRoundBytes() const { return roundBytes(); }
  /// Begins units of different keys, most urgent first, and adds operations in flight that hold
  /// them all. What it throws is the error of those that are in none yet.
  virtual void begin(std::vector<std::unique_ptr<GpuUnit>>& units, InFlightList& inFlight) = 0;

  /// From any thread: open() is to give up soon.
  virtual void cancel() noexcept {}
  /// Returns when no device works for this store any more, whatever became of it. False where one
  /// does not end: then memory that it uses must stay for good.
  virtual bool quiesce() noexcept = 0;

 protected:
  GpuSite() = default;
};

/// A site that has the values, and what optimizers keep for them.
class GpuValueSite : public GpuSite {
 public:
  /// Memory for the key's value. On the caller's thread, while others run.
  virtual void makeRoom(GpuKey&) = 0;
  /// A copy of a key's state with its data, for saving; null where the state itself has it. Nothing
  /// is under way.
  virtual std::unique_ptr<OptimizerState> stateOf(const GpuKey&) { return nullptr; }
  /// The other way round.
  virtual void restoreState(GpuKey&, KeyState&) {}
};

}  // namespace gradlink

// Collectives whose ranks bring and get different lengths. The lengths are exchanged first, so a
// result may be allocated in the middle of the call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/agreement.h"
#include "core/communicator.h"
#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// Whether a rank sends its whole input to each receiver, instead of one part to each.
constexpr bool sendsWhole(Kind kind) { return kind == Kind::allGatherV || kind == Kind::gatherV; }

struct CountedPart {
  const void* in = nullptr;
  /// Elements for each rank, consecutive in `in` unless sendsWhole(kind). All equal in
  /// reduceScatterV.
  std::vector<std::size_t> sent;
  /// Elements expected from each rank; empty: any number.
  std::vector<std::size_t> expected;
  /// The result and its capacity; null: allocated by makePlace.
  void* out = nullptr;
  std::size_t capacity = 0;
  bool hasPlace = false;
  /// Set by the call: elements from each rank; in scatterV and reduceScatterV for each rank.
  std::vector<std::size_t> counts;
  /// Set by the call: elements of the result.
  std::size_t got = 0;
};

/// What a counted call brings besides its shape.
struct Counted {
  std::vector<CountedPart> parts;
  /// Allocates the result of a part without one: `elements`, at least 1.
  std::function<void*(std::size_t part, std::size_t elements)> makePlace;
};

/// The element counts of all pairs of ranks, as exchanged.
class CountedTable {
 public:
  static std::size_t bytesOf(int size) { return RankTable::bytesOf(size, kHeads); }

  /// Nothing is exchanged if all ranks are held here. Throws the same mismatch on all ranks if
  /// their calls differ, or if a count is not the expected one or does not fit.
  CountedTable(const Call& call, std::span<const int> held, int size, const Exchange& exchange);

  int size() const { return table_.size(); }
  std::size_t sent(int from, int to) const { return static_cast<std::size_t>(table_.to(from, to)); }
  /// The offset in the sender's input and in the receiver's output.
  std::size_t inBegin(int from, int to) const;
  std::size_t outBegin(int from, int to) const;
  /// Elements that a rank receives.
  std::size_t total(int to) const;
  /// Elements of a rank's input.
  std::size_t length(int from) const;

  /// Allocates missing results and sets the parts' counts.
  void place(const Call& call, std::span<const int> held) const;

 private:
  // A rank announces its ShapeOnWire and the capacity of its result (kNone: to be allocated), then
  // its sent and its expected count for each rank (kNone: any number).
  using Announced = std::array<std::int64_t, sizeof(ShapeOnWire) / sizeof(std::int64_t)>;
  static constexpr std::size_t kRoom = std::tuple_size_v<Announced>;
  static constexpr std::size_t kHeads = kRoom + 1;

  void check(const Call& call, std::span<const int> held, const Exchange& exchange) const;

  Kind kind_;
  RankTable table_;
};

/// Copies one part of each rank to each, for ranks that are all held in host memory.
void moveHeld(const Call& call, const CountedTable& table);

void runCounted(Communicator& communicator, const Call& call);

}  // namespace gradlink

// Collectives with counts: what ranks bring and get differs in length. How much comes is not known
// before the ranks have told one another, so that the place of a result may be made in the middle
// of the call.
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

/// Whether a rank sends all of its input to whomever it sends to, instead of one part to each.
constexpr bool sendsWhole(Kind kind) { return kind == Kind::allGatherV || kind == Kind::gatherV; }

/// What one held rank brings and gets.
struct CountedPart {
  const void* in = nullptr;
  /// Elements for each rank. They lie in `in` one after the other, unless the kind sends the whole.
  /// reduceScatterV: the same on all ranks.
  std::vector<std::size_t> sent;
  /// Elements that each rank is to send here; empty: as many as come.
  std::vector<std::size_t> expected;
  /// Where the result goes, and how much fits there. Without a place one is made.
  void* out = nullptr;
  std::size_t capacity = 0;
  bool hasPlace = false;
  /// Set by the call: elements that came from each rank; of scatterV and reduceScatterV those that
  /// each rank got.
  std::vector<std::size_t> counts;
  /// Set by the call: elements of the result.
  std::size_t got = 0;
};

/// What a call of allToAllV, allGatherV, gatherV, scatterV or reduceScatterV brings besides its
/// shape.
struct Counted {
  /// In the order of the held ranks.
  std::vector<CountedPart> parts;
  /// A place for so many elements, one at the least, of a part that has none.
  std::function<void*(std::size_t part, std::size_t elements)> makePlace;
};

/// Who sends how much to whom, as all ranks have told one another.
class CountedTable {
 public:
  /// What a rank tells.
  static std::size_t bytesOf(int size) { return RankTable::bytesOf(size, kHeads); }

  /// Where all ranks are held nothing is exchanged. Where ranks made different calls, or what comes
  /// is not what is expected or fits, the same mismatch on all of them.
  CountedTable(const Call& call, std::span<const int> held, int size, const Exchange& exchange);

  int size() const { return table_.size(); }
  std::size_t sent(int from, int to) const { return static_cast<std::size_t>(table_.to(from, to)); }
  /// Where it lies in the sender's input, and in the receiver's output.
  std::size_t inBegin(int from, int to) const;
  std::size_t outBegin(int from, int to) const;
  /// Elements that a rank gets.
  std::size_t total(int to) const;
  /// Elements of a rank's input.
  std::size_t length(int from) const;

  /// Makes the places that are missing, and sets what the parts' counts are.
  void place(const Call& call, std::span<const int> held) const;

 private:
  // Of each rank: its ShapeOnWire and the room it has, kNone where a place is made; how much it
  // sends to each, and how much it expects from each, kNone where it takes what comes.
  using Announced = std::array<std::int64_t, sizeof(ShapeOnWire) / sizeof(std::int64_t)>;
  static constexpr std::size_t kRoom = std::tuple_size_v<Announced>;
  static constexpr std::size_t kHeads = kRoom + 1;

  void check(const Call& call, std::span<const int> held, const Exchange& exchange) const;

  Kind kind_;
  RankTable table_;
};

/// One part of each rank to each, where all ranks are held in the host's memory.
void moveHeld(const Call& call, const CountedTable& table);

/// What they are where a backend has no way of its own: over its other calls.
void runCounted(Communicator& communicator, const Call& call);

}  // namespace gradlink

// The one table of calls: name, whether it has an op and a root, how many blocks go in and out. A
// Shape identifies a call from JavaScript down to the backends.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

enum class Kind : std::uint8_t {
  allReduce,
  reduce,
  broadcast,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  scan,
  exscan,
  barrier,
  // The kinds from here on need more than a shape and buffers: see Call.
  neighborAllReduce,
  split,
  allToAllV,
  allGatherV,
  gatherV,
  scatterV,
  reduceScatterV,
  neighborAllGather,
  pairGossip,
  send,
  receive,
  sendReceive,
};
/// The first kinds: a shape and buffers describe them fully. JavaScript knows kinds by number.
inline constexpr int kCollectiveCount = 11;
inline constexpr int kKindCount = 23;

/// How many blocks of `count` elements a rank brings or gets.
enum class Blocks : std::uint8_t {
  none,
  one,
  each,  // one for each rank
  oneAtRoot,
  eachAtRoot,
};

/// "one", "eachAtRoot": the names in lib/collectives.ts.
const char* nameOf(Blocks blocks);

struct CollectiveTraits {
  Kind kind;
  const char* name;
  bool hasOp;
  bool hasRoot;
  Blocks in;
  Blocks out;
};

// clang-format off
inline constexpr CollectiveTraits kCollectives[kKindCount] = {
    // kind                    name                 op     root   in                  out
    {Kind::allReduce,         "allReduce",         true,  false, Blocks::one,        Blocks::one},
    {Kind::reduce,            "reduce",            true,  true,  Blocks::one,        Blocks::oneAtRoot},
    {Kind::broadcast,         "broadcast",         false, true,  Blocks::oneAtRoot,  Blocks::one},
    {Kind::allGather,         "allGather",         false, false, Blocks::one,        Blocks::each},
    {Kind::reduceScatter,     "reduceScatter",     true,  false, Blocks::each,       Blocks::one},
    {Kind::allToAll,          "allToAll",          false, false, Blocks::each,       Blocks::each},
    {Kind::gather,            "gather",            false, true,  Blocks::one,        Blocks::eachAtRoot},
    {Kind::scatter,           "scatter",           false, true,  Blocks::eachAtRoot, Blocks::one},
    {Kind::scan,              "scan",              true,  false, Blocks::one,        Blocks::one},
    {Kind::exscan,            "exscan",            true,  false, Blocks::one,        Blocks::one},
    {Kind::barrier,           "barrier",           false, false, Blocks::none,       Blocks::none},
    {Kind::neighborAllReduce, "neighborAllReduce", false, false, Blocks::one,        Blocks::one},
    {Kind::split,             "split",             false, false, Blocks::one,        Blocks::each},
    {Kind::allToAllV,         "allToAllV",         false, false, Blocks::none,       Blocks::none},
    {Kind::allGatherV,        "allGatherV",        false, false, Blocks::none,       Blocks::none},
    {Kind::gatherV,           "gatherV",           false, true,  Blocks::none,       Blocks::none},
    {Kind::scatterV,          "scatterV",          false, true,  Blocks::none,       Blocks::none},
    {Kind::reduceScatterV,    "reduceScatterV",    true,  false, Blocks::none,       Blocks::none},
    {Kind::neighborAllGather, "neighborAllGather", false, false, Blocks::none,       Blocks::none},
    {Kind::pairGossip,        "pairGossip",        false, false, Blocks::none,       Blocks::none},
    {Kind::send,              "send",              false, false, Blocks::none,       Blocks::none},
    {Kind::receive,           "receive",           false, false, Blocks::none,       Blocks::none},
    {Kind::sendReceive,       "sendReceive",       false, false, Blocks::none,       Blocks::none},
};
// clang-format on

constexpr const CollectiveTraits& traitsOf(Kind kind) {
  return kCollectives[static_cast<std::size_t>(kind)];
}
constexpr bool hasOp(Kind kind) { return traitsOf(kind).hasOp; }
constexpr bool hasRoot(Kind kind) { return traitsOf(kind).hasRoot; }

/// Whether a shape and buffers describe the call fully.
constexpr bool isPlain(Kind kind) { return static_cast<int>(kind) < kCollectiveCount; }
/// Whether ranks bring and get different lengths: see core/counted.h.
constexpr bool isCounted(Kind kind) {
  return kind >= Kind::allToAllV && kind <= Kind::reduceScatterV;
}
constexpr bool isMessage(Kind kind) { return kind >= Kind::send && kind <= Kind::sendReceive; }

/// Rank r's result reduces ranks 0 to r. exscan leaves out r; its rank 0 gets the op's identity.
constexpr bool isScan(Kind kind) { return kind == Kind::scan || kind == Kind::exscan; }
/// How many ranks, starting at 0, are reduced into this rank's result.
constexpr std::size_t scannedRanks(Kind kind, int rank) {
  return static_cast<std::size_t>(rank) + (kind == Kind::scan ? 1 : 0);
}

/// Safe for a number that a peer sent and that is not a kind.
const char* nameOf(Kind kind);

/// Identifies one collective call; all ranks must agree on it. Fields without meaning for the kind
/// keep their defaults, so shapes compare field by field.
struct Shape {
  Kind kind = Kind::barrier;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  std::uint64_t count = 0;

  bool operator==(const Shape&) const = default;
};

/// Of calls whose measurements are alike: sizes within a factor of two share a key. Never 0.
inline std::uint32_t similarCallsKey(const Shape& shape, std::size_t bytes, int ranks) {
  const auto kind = static_cast<std::uint32_t>(shape.kind);
  const auto dtype = static_cast<std::uint32_t>(shape.dtype);
  const auto op = static_cast<std::uint32_t>(shape.op);
  const auto size = static_cast<std::uint32_t>(std::bit_width(bytes));
  return (((kind << 8 | dtype << 4 | op) << 6 | size) << 12 | static_cast<std::uint32_t>(ranks)) +
         1;
}

/// Announced by ranks that ask for the hosts: this call has no kind of its own.
inline constexpr Shape kNodesCall{.kind = Kind::split, .count = 1};
inline constexpr Shape kOpenWireCall{.kind = Kind::split, .count = 2};
/// Announced by ranks that exchange the names of mismatching calls.
inline constexpr Shape kNamesCall{.kind = Kind::split, .count = 3};

/// "allReduce(count 12, float32, sum)", for messages.
std::string describe(const Shape& shape);

/// A shape as ranks announce it: without padding, so it can be compared and hashed as bytes.
struct ShapeOnWire {
  ShapeOnWire() = default;
  explicit ShapeOnWire(const Shape& shape)
      : count(shape.count),
        root(shape.root),
        kind(static_cast<std::uint8_t>(shape.kind)),
        dtype(static_cast<std::uint8_t>(shape.dtype)),
        op(static_cast<std::uint16_t>(shape.op)) {}
  Shape shape() const {
    return {static_cast<Kind>(kind), static_cast<DType>(dtype), static_cast<ReduceOp>(op), root,
            count};
  }
  bool operator==(const ShapeOnWire&) const = default;
  /// Validates what a peer sent.
  bool isKnown() const { return kind < kKindCount && dtype < kDTypeCount && op < kReduceOpCount; }

  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t kind = 0;
  std::uint8_t dtype = 0;
  std::uint16_t op = 0;
};
static_assert(std::has_unique_object_representations_v<ShapeOnWire>);

inline std::string describe(const ShapeOnWire& announced) {
  return announced.isKnown() ? describe(announced.shape()) : "an unknown operation";
}

constexpr std::size_t blocksOf(Blocks blocks, int size, bool isRoot) {
  switch (blocks) {
    case Blocks::none:
      return 0;
    case Blocks::one:
      return 1;
    case Blocks::each:
      return static_cast<std::size_t>(size);
    case Blocks::oneAtRoot:
      return isRoot ? 1 : 0;
    case Blocks::eachAtRoot:
      return isRoot ? static_cast<std::size_t>(size) : 0;
  }
  return 0;
}

/// Blocks of `count` elements in the rank's input and output; 0 if it needs no pointer.
constexpr std::size_t inBlocks(const Shape& shape, int size, int rank) {
  return blocksOf(traitsOf(shape.kind).in, size, rank == shape.root);
}
constexpr std::size_t outBlocks(const Shape& shape, int size, int rank) {
  return blocksOf(traitsOf(shape.kind).out, size, rank == shape.root);
}

/// The largest input of any rank: equal on all ranks, because the choice of algorithm must be.
constexpr std::size_t largestInput(const Shape& shape, int size) {
  return blocksOf(traitsOf(shape.kind).in, size, true) * shape.count * sizeOf(shape.dtype);
}

}  // namespace gradlink

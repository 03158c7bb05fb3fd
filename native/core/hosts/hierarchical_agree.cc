// How the ranks of several hosts find that they make the same call: inside each host, then between
// the leaders, then the failure goes round in the host. A small sum rides along.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/call_differences.h"
#include "core/hosts/hierarchical_templates.h"
#include "core/kernels/partial.h"

namespace gradlink {
namespace {

constexpr std::size_t kTextBytes = 384;
using Small = std::array<std::byte, Hierarchical::kSmallBytes>;

struct FromRank {
  ShapeOnWire announced;
  alignas(8) Small data{};
};

/// What a leader tells the others.
struct FromNode {
  ShapeOnWire announced;
  alignas(8) Small data{};
  /// The first rank of the host that makes another call than its leader; -1 where there is none.
  std::int64_t odd = -1;
  /// "rank 2 called ...; rank 3 called ...", where they differ.
  std::array<char, kTextBytes> text{};
};

/// What a leader tells its host.
struct Outcome {
  alignas(8) Small data{};
  /// The first rank whose call differs from rank 0's; -1 where all make the same.
  std::int64_t odd = -1;
  /// Rank 0's call.
  ShapeOnWire first;
  std::array<char, 2 * kTextBytes> text{};
};

template <std::size_t room>
void store(std::array<char, room>& to, const std::string& text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

std::string callsOf(const std::vector<FromRank>& all, const std::vector<int>& members) {
  CallGroups groups;
  for (std::size_t r = 0; r < all.size(); ++r) {
    groups.add(members[r], describe(all[r].announced.shape()));
  }
  return groups.text();
}

std::string callOf(const std::vector<int>& members, const ShapeOnWire& announced) {
  CallGroups groups;
  groups.add(members, describe(announced.shape()));
  return groups.text();
}

template <class One>
void combine(Small& into, const std::vector<One>& all, std::size_t count, const Partial& partial) {
  std::vector<const void*> from;
  from.reserve(all.size());
  for (const One& one : all) from.push_back(one.data.data());
  void* const to[] = {into.data()};
  reduceMany(to, from, count, partial.dtype, stepOf(partial.op));
}

template <class T>
void gatherAll(Communicator& part, const T& own, std::vector<T>& all, const CallOptions& options) {
  const void* const in[] = {&own};
  void* const out[] = {all.data()};
  part.allGather({in, out}, sizeof(T), DType::uint8, options);
}

FromNode summaryOf(const std::vector<FromRank>& all, const std::vector<int>& members) {
  FromNode summary;
  summary.announced = all[0].announced;
  for (std::size_t r = all.size(); r-- > 1;) {
    if (all[r].announced != all[0].announced) summary.odd = members[r];
  }
  if (summary.odd >= 0) store(summary.text, callsOf(all, members));
  return summary;
}

/// The failure over all hosts.
Outcome judge(const std::vector<FromNode>& all, const NodeMap& map) {
  Outcome outcome;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const bool differs = all[n].announced != all[0].announced;
    const std::int64_t odd = differs ? map.leaderOf(static_cast<int>(n)) : all[n].odd;
    if (odd >= 0 && (outcome.odd < 0 || odd < outcome.odd)) outcome.odd = odd;
  }
  if (outcome.odd < 0) return outcome;
  outcome.first = all[0].announced;
  std::string text;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const std::vector<int>& members = map.members(static_cast<int>(n));
    text += (n == 0 ? "" : "; ") +
            (all[n].odd >= 0 ? std::string(all[n].text.data()) : callOf(members, all[n].announced));
  }
  store(outcome.text, text);
  return outcome;
}

}  // namespace

void Hierarchical::agree(const Begun& call, std::byte* small) {
  const Shape& shape = call.shape;
  const Partial partial(shape.dtype, shape.op);
  const std::size_t count = small == nullptr ? 0 : shape.count;
  const std::size_t bytes = count * sizeOf(shape.dtype);
  FromRank own{ShapeOnWire(shape)};
  partial.take(small, own.data.data(), count);
  std::vector<FromRank> ranks(map_.ownMembers().size());
  onNode(call.op(), [&] { gatherAll(*node_, own, ranks, left(call, Step::node)); });

  Outcome outcome;
  if (leaders_) {
    FromNode mine = summaryOf(ranks, map_.ownMembers());
    if (count > 0 && mine.odd < 0) combine(mine.data, ranks, count, partial);
    std::vector<FromNode> nodes(static_cast<std::size_t>(map_.nodes()));
    onLeaders(call.op(), [&] { gatherAll(*leaders_, mine, nodes, left(call, Step::leaders)); });
    outcome = judge(nodes, map_);
    if (count > 0 && outcome.odd < 0) {
      combine(outcome.data, nodes, count, partial);
      std::byte* const sums = outcome.data.data();
      partial.finish(sums, sums, count, static_cast<std::size_t>(size()));
    }
  }
  onNode(call.op(), [&] {
    const void* const in[] = {&outcome};
    void* const out[] = {&outcome};
    node_->broadcast({in, out}, sizeof(outcome), DType::uint8, 0, left(call, Step::result));
  });
  if (outcome.odd >= 0) {
    const int odd = static_cast<int>(outcome.odd);
    throw differentCalls(call.op(), outcome.text.data(), odd,
                         own.announced == outcome.first ? odd : 0);
  }
  if (bytes > 0) std::memcpy(small, outcome.data.data(), bytes);
}

}  // namespace gradlink

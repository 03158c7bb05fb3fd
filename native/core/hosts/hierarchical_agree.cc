// How the ranks of several hosts check that they make the same call: in each host, between the
// leaders, then in each host again. A small sum is sent along.
#include <array>
#include <cstring>

#include "core/agreement.h"
#include "core/hosts/hierarchical_templates.h"
#include "core/kernels/partial.h"

namespace gradlink {
namespace {

/// The announcement of one rank or a group.
struct HostsAnnouncement {
  ShapeOnWire shape;
  /// Whether the ranks of the group make different calls.
  std::uint64_t differ = 0;
  alignas(8) std::array<std::byte, Hierarchical::kSmallBytes> data{};
};

HostsAnnouncement together(const std::vector<HostsAnnouncement>& all, const Partial& partial,
                           std::size_t count) {
  HostsAnnouncement sum = all.front();
  std::vector<const void*> from;
  for (const HostsAnnouncement& one : all) {
    from.push_back(one.data.data());
    if (one.differ != 0 || one.shape != sum.shape) sum.differ = 1;
  }
  void* const to[] = {sum.data.data()};
  if (count > 0 && sum.differ == 0) reduceMany(to, from, count, partial.dtype, stepOf(partial.op));
  return sum;
}

}  // namespace

void Hierarchical::agree(const RunningCall& call, std::byte* small) {
  const Shape& shape = call.shape;
  const Partial partial(shape.dtype, shape.op);
  const std::size_t count = small == nullptr ? 0 : shape.count;
  HostsAnnouncement all{ShapeOnWire(shape)};
  partial.take(small, all.data.data(), count);
  const auto gather = [&](Communicator& part, Step step) {
    const auto ofEach = exchangeRecords(exchangeOver(part, left(call, step)), part.size(), all);
    if (leaders_) all = together(ofEach, partial, count);
  };
  onNode(call.op(), [&] { gather(*node_, Step::node); });
  if (leaders_) {
    onLeaders(call.op(), [&] { gather(*leaders_, Step::leaders); });
    std::byte* const sums = all.data.data();
    partial.finish(sums, sums, count, static_cast<std::size_t>(size()));
  }
  onNode(call.op(), [&] {
    const void* const in[] = {&all};
    void* const out[] = {&all};
    node_->broadcast({in, out}, sizeof(all), DType::uint8, 0, left(call, Step::result));
  });
  if (all.differ != 0) {
    // Only a mismatch needs the calls of all ranks.
    const auto ofAll = [&](const auto& own) {
      const Exchange exchange = exchangeOver(*world_, left(call, Step::judgement));
      return onWorld(call.op(), [&] { return exchangeRecords(exchange, size(), own); });
    };
    const std::vector<ShapeOnWire> calls = ofAll(ShapeOnWire(shape));
    checkSame<ShapeOnWire>(call.op(), calls, rank(), [&] { return ofAll(CallName(call.name)); });
  }
  if (count > 0) std::memcpy(small, all.data.data(), count * sizeOf(shape.dtype));
}

}  // namespace gradlink

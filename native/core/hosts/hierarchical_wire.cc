#include "core/hosts/hierarchical_wire.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gradlink {
namespace {

// Both wires are polled in turn. While nothing arrives, the poll of the inner wire waits longer and
// longer: the most that a message from another host can be delayed.
constexpr double kShortestNapMs = 0.005;
constexpr double kLongestNapMs = 0.2;
constexpr int kTurnsBeforeNaps = 200;

class HierarchicalWire final : public Wire {
 public:
  HierarchicalWire(std::unique_ptr<Wire> inside, std::unique_ptr<Wire> across, const NodeMap& map)
      : inside_(std::move(inside)), across_(std::move(across)), map_(map) {}

  int rank() const override { return map_.rank(); }
  int size() const override { return map_.size(); }
  const char* backend() const override { return across_->backend(); }
  bool sharesMemoryWith(int rank) const override {
    return near(rank) && inside_->sharesMemoryWith(map_.localOf(rank));
  }

  void* allocate(std::size_t bytes) override { return inside_->allocate(bytes); }
  void deallocate(void* memory) override { inside_->deallocate(memory); }
  bool owns(const void* memory, std::size_t bytes) override { return inside_->owns(memory, bytes); }

  void send(int destination, std::span<const std::byte> header, const void* payload,
            std::size_t bytes, std::uint64_t ticket) override {
    if (near(destination)) {
      inside_->send(map_.localOf(destination), header, payload, bytes, ticket);
    } else {
      across_->send(destination, header, payload, bytes, ticket);
    }
  }
  void release(std::uint64_t token) override {
    ((token & 1) != 0 ? across_ : inside_)->release(token >> 1);
  }

  void poll(WireEvents& events, Deadline until) override {
    double nap = kShortestNapMs;
    for (int turn = 0;; ++turn) {
      const Deadline wait = turn < kTurnsBeforeNaps ? Deadline::in(0) : Deadline::in(nap);
      if (turn >= kTurnsBeforeNaps) nap = std::min(2 * nap, kLongestNapMs);
      found_.clear();
      inside_->poll(found_, std::min(wait, until, earlier));
      take(events, 0);
      found_.clear();
      across_->poll(found_, Deadline::in(0));
      take(events, 1);
      if (!events.empty() || until.passed() || woken_.exchange(false)) return;
    }
  }
  void setReceiptsMatter(bool value) override { inside_->setReceiptsMatter(value); }
  bool pollSleeps() const override { return inside_->pollSleeps(); }
  void wake() override {
    woken_ = true;
    inside_->wake();
  }

  std::vector<std::uint64_t> bytesSent() const override {
    return merged(inside_->bytesSent(), across_->bytesSent());
  }
  std::vector<std::uint64_t> bytesReceived() const override {
    return merged(inside_->bytesReceived(), across_->bytesReceived());
  }

  void close(Deadline until) override {
    across_->close(until);
    inside_->close(until);
  }

 private:
  static bool earlier(const Deadline& a, const Deadline& b) { return a.at() < b.at(); }

  bool near(int rank) const { return map_.nodeOf(rank) == map_.ownNode(); }

  /// Moves a wire's events to `events`, translated to world ranks and tokens.
  void take(WireEvents& events, std::uint64_t fromAcross) {
    const bool inHost = fromAcross == 0;
    const auto name = [&](int rank) {
      return inHost ? map_.ownMembers()[static_cast<std::size_t>(rank)] : rank;
    };
    for (WireMessage& message : found_.messages) {
      message.source = name(message.source);
      message.token = message.token << 1 | fromAcross;
      events.messages.push_back(message);
    }
    events.sent.insert(events.sent.end(), found_.sent.begin(), found_.sent.end());
    // Both report the end of a rank on this host. The inner wire, with its messages, comes last.
    for (const int rank : found_.lost) {
      if (inHost || !near(rank)) events.lost.push_back(name(rank));
    }
    for (const int rank : found_.left) {
      if (inHost || !near(rank)) events.left.push_back(name(rank));
    }
  }

  std::vector<std::uint64_t> merged(const std::vector<std::uint64_t>& inside,
                                    std::vector<std::uint64_t> all) const {
    for (std::size_t local = 0; local < inside.size(); ++local)
      all[static_cast<std::size_t>(map_.ownMembers()[local])] = inside[local];
    return all;
  }

  std::unique_ptr<Wire> inside_;
  std::unique_ptr<Wire> across_;
  const NodeMap map_;
  WireEvents found_;
  std::atomic<bool> woken_{false};
};

}  // namespace

std::unique_ptr<Wire> makeHierarchicalWire(std::unique_ptr<Wire> inside,
                                           std::unique_ptr<Wire> across, const NodeMap& map) {
  return std::make_unique<HierarchicalWire>(std::move(inside), std::move(across), map);
}

}  // namespace gradlink

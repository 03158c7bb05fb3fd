// A communicator over several hosts, made of one inside each host and one between the hosts'
// leaders. Data is reduced inside the host first, so it crosses the network once for each host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/call.h"
#include "core/deadline.h"
#include "core/hosts/node_map.h"
#include "core/one_rank.h"
#include "core/windows/wire_windows.h"
#include "core/work_queue.h"

namespace gradlink {

/// The parts, from one rank's side. Each holds one rank.
struct Levels {
  /// All ranks. Messages and calls that reduce nothing use it.
  std::unique_ptr<Communicator> world;
  /// The ranks of this host in world order; rank 0 is the leader.
  std::unique_ptr<Communicator> node;
  /// The hosts' leaders in world order; null on other ranks.
  std::unique_ptr<Communicator> leaders;
  /// A number for each world rank, equal for ranks of one host.
  std::vector<int> nodeOf;
  double timeoutMs = 30000;
};

/// The best communicator of these parts: world itself with one rank a host, the host's engine
/// (under world's name) with one host, else both levels. Results and errors use world's ranks.
std::unique_ptr<Communicator> overHosts(Levels levels);

class Hierarchical final : public OneRank {
 public:
  /// The largest sum sent with the announcement of its call, in the type of its partial results.
  static constexpr std::size_t kSmallBytes = 96;

  explicit Hierarchical(Levels levels);
  ~Hierarchical() override;

  int size() const override { return map_.size(); }
  double timeoutMs() const override { return timeoutMs_; }
  const char* backend() const override { return world_->backend(); }

  void run(const Call&) override;

  std::size_t leastGpuMessage() const override { return world_->leastGpuMessage(); }

  void* allocShared(std::size_t bytes) override { return node_->allocShared(bytes); }
  void freeShared(void* memory) override { node_->freeShared(memory); }
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions&) override;
  std::unique_ptr<Wire> openWire(const CallOptions&) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions&) override;
  void abort(const std::string& reason) override;
  void fail(const Error& error) override;
  void check(const char* op) override;
  void leave() override;
  void close() override;

 private:
  /// A call in progress: its shape and its deadline.
  struct RunningCall {
    Shape shape;
    Deadline deadline;
    /// Extra time for ranks that wait for a late rank through others, so the error names that one.
    double graceMs;
    const char* name = nullptr;
    const char* op() const { return nameOf(shape.kind); }
  };

  // ---- hierarchical_agree.cc

  /// Begins a call on all ranks; throws the same mismatch on all if their calls differ. `small`: an
  /// allReduce input that fits in the announcement; receives the sum.
  void agree(const RunningCall& call, std::byte* small = nullptr);

  // ---- hierarchical.cc

  RunningCall begin(const Shape& shape, const CallOptions& options);
  static bool isSmall(const Shape& shape);
  void move(const RunningCall&, const Buffers&);
  void smallAllReduce(const RunningCall&, const Buffers&);
  /// Runs a call; a fatal error ends the calls of all ranks.
  template <class Body>
  auto guarded(const char* op, Body body);
  /// Runs calls of the parts and translates the ranks in their errors.
  template <class Body>
  auto onNode(const char* op, Body body);
  template <class Body>
  auto onLeaders(const char* op, Body body);
  template <class Body>
  auto onWorld(const char* op, Body body);
  /// Inner calls get the remaining time, plus more the more steps they wait through.
  enum class Step { node = 0, leaders = 1, result = 2, judgement = 3 };
  static CallOptions left(const RunningCall& call, Step step);

  // ---- hierarchical_pieces.cc

  /// A piece of a call: `count` elements from `at`, its number, and its scratch buffer (of two).
  struct Slice {
    std::size_t index;
    std::size_t at;
    std::size_t count;
    std::size_t set() const { return index % 2; }
  };
  struct Cut {
    std::size_t count;
    /// Elements of a piece; the last may be shorter.
    std::size_t step;
    std::size_t pieces() const { return step == 0 ? 1 : (count + step - 1) / step; }
    Slice piece(std::size_t index) const {
      return {index, index * step, std::min(step, count - index * step)};
    }
  };
  using Stage = std::function<void(const Slice&)>;
  /// Cuts a call into pieces and takes each through three stages: in the host, between the leaders
  /// (on the leader only), in the host again. Stages of different pieces overlap.
  void pipeline(const char* op, const Cut& cut, const Stage& gatherIn, const Stage& travel,
                const Stage& spreadOut);
  /// `blocks`: how many blocks of the call's count a piece takes part of.
  static Cut cut(const Shape& shape, std::size_t blocks);
  std::byte* scratch(std::size_t bytes);

  void runAllReduce(const RunningCall&, const Buffers&);
  void runReduce(const RunningCall&, const Buffers&);
  void runBroadcast(const RunningCall&, const Buffers&);
  void runAllGather(const RunningCall&, const Buffers&);
  void runReduceScatter(const RunningCall&, const Buffers&);

  const NodeMap map_;
  const double timeoutMs_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<Communicator> leaders_;
  WireWindows windows_;
  std::vector<std::byte> scratch_;
  bool closed_ = false;
  /// On leaders: moves pieces across the network. Destroyed first, as the last member.
  WorkQueue network_;
};

}  // namespace gradlink

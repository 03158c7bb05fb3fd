// A communicator over several hosts, made of one inside each host and one between the hosts'
// leaders: data is reduced inside the host first, so that it crosses the network once for all ranks
// of a host.
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

/// What a communicator of several hosts is made of, from one rank's side. Each holds one rank.
struct Levels {
  /// All ranks. Calls that reduce nothing go over it, and messages.
  std::unique_ptr<Communicator> world;
  /// The ranks of this rank's host, in the order of world's; its rank 0 is the leader.
  std::unique_ptr<Communicator> node;
  /// The hosts' leaders, in the order of world's; null on other ranks.
  std::unique_ptr<Communicator> leaders;
  /// For each rank of world a number, equal for those that share a host.
  std::vector<int> nodeOf;
  /// The default of every call.
  double timeoutMs = 30000;
};

/// What is best made of them: with one rank a host world itself, with one host its engine alone
/// (under world's name), else both levels. The ranks of results and errors are world's.
std::unique_ptr<Communicator> overHosts(Levels levels);

class Hierarchical final : public OneRank {
 public:
  /// The largest sum that travels with the announcement of its call, as the type of its partial
  /// results.
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
  /// A call that has begun: what all ranks agree on, and how long it may take.
  struct Begun {
    Shape shape;
    Deadline deadline;
    /// More time for who waits for a late rank through others, so that the failure names the late.
    double graceMs;
    const char* name = nullptr;
    const char* op() const { return nameOf(shape.kind); }
  };

  // ---- hierarchical_agree.cc

  /// Begins a call on all ranks: throws mismatch, on all of them, where they make different ones.
  /// `small`: the input of an allReduce that fits in the announcement; becomes the sum over all.
  void agree(const Begun& call, std::byte* small = nullptr);

  // ---- hierarchical.cc

  Begun begin(const Shape& shape, const CallOptions& options);
  static bool isSmall(const Shape& shape);
  void move(const Begun&, const Buffers&);
  void smallAllReduce(const Begun&, const Buffers&);
  /// Runs a call; where it fails for good, all ranks' calls end with its error.
  template <class Body>
  auto guarded(const char* op, Body body);
  /// Calls of the parts, whose errors name this communicator's ranks.
  template <class Body>
  auto onNode(const char* op, Body body);
  template <class Body>
  auto onLeaders(const char* op, Body body);
  template <class Body>
  auto onWorld(const char* op, Body body);
  /// A part of a call gets what is left of its time, and more the more steps it waits through.
  enum class Step { node = 0, leaders = 1, result = 2, judgement = 3 };
  static CallOptions left(const Begun& call, Step step);

  // ---- hierarchical_pieces.cc

  /// A piece of a call: `count` elements from element `at` on, the number of the piece and which of
  /// two sets of scratch memory it has.
  struct Slice {
    std::size_t index;
    std::size_t at;
    std::size_t count;
    std::size_t set() const { return index % 2; }
  };
  struct Cut {
    std::size_t count;
    /// Elements of a piece; the last may have fewer.
    std::size_t step;
    std::size_t pieces() const { return step == 0 ? 1 : (count + step - 1) / step; }
    Slice piece(std::size_t index) const {
      return {index, index * step, std::min(step, count - index * step)};
    }
  };
  using Stage = std::function<void(const Slice&)>;
  /// Cuts a call into pieces and takes each through three stages: in the host, between the leaders
  /// (on the leader alone), in the host again. While a piece travels the host works on the next.
  void pipeline(const char* op, const Cut& cut, const Stage& gatherIn, const Stage& travel,
                const Stage& spreadOut);
  /// `blocks`: how many of the size of the call's count a piece takes part of.
  static Cut cut(const Shape& shape, std::size_t blocks);
  std::byte* scratch(std::size_t bytes);

  void runAllReduce(const Begun&, const Buffers&);
  void runReduce(const Begun&, const Buffers&);
  void runBroadcast(const Begun&, const Buffers&);
  void runAllGather(const Begun&, const Buffers&);
  void runReduceScatter(const Begun&, const Buffers&);

  const NodeMap map_;
  const double timeoutMs_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<Communicator> leaders_;
  WireWindows windows_;
  std::vector<std::byte> scratch_;
  bool closed_ = false;
  /// The leader's: takes pieces across the network. Last, so destroyed first.
  WorkQueue network_;
};

}  // namespace gradlink

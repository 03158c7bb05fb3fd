// One rank of an MPI job, or of a part of one.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/direct.h"
#include "core/windows/wire_windows.h"
#include "messages/agreement.h"
#include "messages/join.h"
#include "messages/point_to_point.h"
#include "messages/rank_link.h"
#include "messages/scratch.h"

namespace gradlink::messages {

class RankCommunicator final : public MpiCommunicator {
 public:
  /// Takes ownership of the MPI communicator.
  RankCommunicator(CommHandle comm, std::vector<int> worldRanks, double timeoutMs);
  ~RankCommunicator() override;

  int size() const override { return link_.size(); }
  double timeoutMs() const override { return timeoutMs_; }
  const char* backend() const override;
  const std::vector<int>& worldRanks() const override { return worldRanks_; }
  const std::vector<int>& nodes(const CallOptions&) override;

  void run(const Call&) override;

  std::size_t leastGpuMessage() const override;

  /// Memory of this process only: MPI cannot map it into others.
  void* allocShared(std::size_t bytes) override;
  void freeShared(void* memory) override;
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions&) override;
  std::unique_ptr<MpiCommunicator> splitRanks(int color, int key, const CallOptions&);
  std::unique_ptr<Wire> openWire(const CallOptions&) override;
  std::unique_ptr<Window> openWindow(const WindowSpec&, const CallOptions&) override;
  void abort(const std::string& reason) override;
  void fail(const Error& error) override;
  void follow(Communicator& above) override;
  void check(const char* op) override;
  void leave() override;
  void close() override;

 private:
  template <class Body>
  auto guarded(const char* op, Body body) {
    if (closed_.load(std::memory_order_acquire)) {
      throw Error(ErrorCode::closed, std::string(op) + ": the communicator is closed").withOp(op);
    }
    const InUse inUse(op);
    link_.check(op);
    try {
      return body();
    } catch (const Error& error) {
      // The peers cannot learn of MPI's error otherwise.
      if (error.code == ErrorCode::system && !link_.ended()) {
        link_.failAll(error.code, rank(), op, error.what());
      }
      throw;
    }
  }
  double timeoutOf(const CallOptions& options) const {
    return options.timeoutMs < 0 ? timeoutMs_ : options.timeoutMs;
  }
  void move(const Shape& shape, const Buffers& buffers, Wait& wait);
  void weigh(const Call& call, Wait& wait);
  void count(const Call& call, Wait& wait);
  void transfer(const Call& call);
  void oneShot(const Shape& shape, const Buffers& buffers, Wait& wait);
  bool pairAllReduce(const Shape& shape, const Buffers& buffers, const CallOptions& options);
  std::vector<Neighborhood> exchangeNeighborhoods(const Shape& shape, const Neighborhood& own,
                                                  Wait& wait);

  Link link_;
  const std::vector<int> worldRanks_;
  const double timeoutMs_;
  Agreement agreement_;
  Messages messages_;
  WireWindows windows_;
  Scratch scratch_;
  std::vector<int> nodes_;
  std::vector<InView> in_;
  /// Of this rank alone.
  std::vector<OutView> out_;
  std::atomic<bool> closed_{false};
  std::mutex memoryMutex_;
  std::map<void*, std::unique_ptr<std::byte, void (*)(void*)>> memory_;
};

}  // namespace gradlink::messages

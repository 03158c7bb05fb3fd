// The receiving thread of a server: passes pieces to pipelines and runs store-wide requests.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/server/context.h"
#include "kvstore/server/pipeline.h"
#include "kvstore/server/server.h"
#include "kvstore/server/shard.h"

namespace gradlink::dist {

class ServerLoop {
 public:
  ServerLoop(Wire& wire, const ServerOptions& options, const std::atomic<bool>* stop);

  /// Runs until every worker's wire has ended. Throws what ended the store, after telling workers.
  void run();
  ServerReport report();

 private:
  /// A worker's messages, carried out in order. Some wait until the rounds of the worker's earlier
  /// pushes have closed, and later ones wait behind them.
  struct Stream {
    std::optional<WireMessage> control;
    std::deque<WireMessage> backlog;
    /// Optimizers and states that it has set.
    std::uint64_t rules = 0;
    std::optional<std::uint64_t> barrier;
    /// Since when it waits in a barrier or for worker 0's optimizer; unset if it does not.
    std::optional<Deadline::Clock::time_point> waitsSince;
    /// Its wire has ended in good order.
    bool ended = false;
    Deadline::Clock::time_point endedAt{};
    /// Ended, and everything carried out.
    bool over = false;
    Deadline::Clock::time_point heardAt{};
  };

  void serve();
  void sendFailure(const Error& error);
  Error blamed(const Error& error) const;
  void take(const WireEvents& events);
  void sent(std::uint64_t ticket);
  void left(int rank);
  void lost(int rank);
  void end(int worker, Standing standing);
  bool allOver() const;
  void tick();
  bool anyPending() const;

  void receive(const WireMessage& message);
  void note(ServerTrace& trace, const WireMessage& message) const;
  void dispatch(const WireMessage& message);
  void define(const Header& header, const WireMessage& message);
  void toShard(const Header& header, const WireMessage& message);

  void pumpStreams();
  bool mayEnd(int worker) const;
  bool carryOut(int worker, const WireMessage& control);
  bool waitsForRule(int worker) const;
  bool setRule(int worker, const Header& header, const WireMessage& message);
  void setOptimizer(const WireMessage& message);
  void loadStates(const WireMessage& message);
  void saveStates(int worker, const Header& header);
  void answerCommand(const Header& header, const WireMessage& message);
  void setCompression(const WireMessage& message);
  void setStanding(int worker, Standing standing);
  void checkBarrier();
  void checkDeadlines(Deadline::Clock::time_point now);
  void drainPipelines();

  Stream& stream(int worker) { return streams_[static_cast<std::size_t>(worker)]; }
  const Stream& stream(int worker) const { return streams_[static_cast<std::size_t>(worker)]; }
  Standing standing(int worker) const {
    return context_.standing[static_cast<std::size_t>(worker)];
  }
  ServerShard& shard(std::uint32_t number);
  Pipeline& pipelineOf(std::uint32_t shard) { return *pipelines_[shard % pipelines_.size()]; }
  void* valueMemory(std::size_t bytes);
  std::string reportText();

  Wire& wire_;
  const ServerOptions& options_;
  const std::atomic<bool>* const stop_;
  ServerContext context_;
  std::vector<std::unique_ptr<ServerShard>> shards_;  // by number; null: another server's
  /// Declared after the shards, so their threads end first.
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  std::vector<Stream> streams_;
  /// The outcome of worker 0's optimizers and states, in order.
  std::vector<std::optional<Error>> rules_;
  int lostRanks_ = 0;
  std::byte* chunk_ = nullptr;
  std::size_t chunkLeft_ = 0;
  double wait_ = 0;
  /// The current message is the only one that has come.
  bool single_ = false;
  Deadline::Clock::time_point nextTick_{};
};

}  // namespace gradlink::dist

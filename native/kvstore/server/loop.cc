#include "kvstore/server/loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/thread_pool.h"

namespace gradlink::dist {
namespace {

// The latency for `stop`, late workers and failed pipelines.
constexpr std::chrono::milliseconds kTickEvery(50);
constexpr int kMostThreads = 16;
// Small values share a region: peers map each region, and the system limits mappings.
constexpr std::size_t kChunkBytes = 2 << 20;
constexpr std::size_t kOwnMemoryBytes = 256 << 10;
constexpr std::size_t kAlignment = 128;
// Limits shard numbers, which count all servers' shards in the order of definition.
constexpr std::size_t kMostAhead = 1 << 20;
// Of a shard's offset and rows, so their bytes do not overflow.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;

int threadsFor(const Wire& wire, int wanted) {
  if (wanted > 0) return std::min(wanted, kMostThreads);
  int local = 0;
  for (int r = 0; r < wire.size(); ++r) local += wire.sharesMemoryWith(r) ? 1 : 0;
  return std::clamp(ThreadPool::shared().width() / std::max(local, 1), 1, kMostThreads);
}

bool isControl(MessageType type) {
  return type == MessageType::setOptimizer || type == MessageType::setLearningRate ||
         type == MessageType::saveStates || type == MessageType::loadStates;
}

std::string rowsOf(std::uint64_t rowLength) {
  return rowLength == 1 ? "" : " in rows of " + std::to_string(rowLength);
}

}  // namespace

ServerLoop::ServerLoop(Wire& wire, const ServerOptions& options, const std::atomic<bool>* stop)
    : wire_(wire),
      options_(options),
      stop_(stop),
      context_(wire, options),
      streams_(static_cast<std::size_t>(options.workers)) {
  context_.updater = options.updater;
  const int threads = threadsFor(wire, options.threads);
  for (int t = 0; t < threads; ++t) {
    pipelines_.push_back(std::make_unique<Pipeline>(context_, t, threads > 1));
  }
  if (options.trace != nullptr) options.trace->setPipelines(threads);
}

void ServerLoop::run() {
  try {
    serve();
  } catch (const Error& error) {
    const Error full = blamed(error);
    sendFailure(full);
    throw full;
  } catch (const std::exception& error) {
    sendFailure(Error(ErrorCode::system, error.what()));
    throw;
  }
}

void ServerLoop::serve() {
  WireEvents events;
  while (!allOver()) {
    const auto begin = Deadline::Clock::now();
    // Receipts matter only to pending pieces, whose values workers still read.
    wire_.setReceiptsMatter(anyPending());
    wire_.poll(events, Deadline::in(std::chrono::duration<double, std::milli>(kTickEvery).count()));
    const auto now = Deadline::Clock::now();
    wait_ += std::chrono::duration<double>(now - begin).count();
    take(events);
    events.clear();
    pumpStreams();
    if (now >= nextTick_) {
      nextTick_ = now + kTickEvery;
      tick();
    }
    context_.throwFailure();
  }
  drainPipelines();
  context_.throwFailure();
}

// Workers that still listen get the reason.
void ServerLoop::sendFailure(const Error& error) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!stream(worker).over) context_.replies.failed(worker, 0, error);
  }
}

void ServerLoop::take(const WireEvents& events) {
  for (const std::uint64_t ticket : events.sent) sent(ticket);
  single_ = events.messages.size() == 1;
  for (const WireMessage& message : events.messages) receive(message);
  for (const int rank : events.left) left(rank);
  for (const int rank : events.lost) lost(rank);
}

void ServerLoop::sent(std::uint64_t ticket) {
  if (context_.replies.took(ticket)) return;
  const auto number = static_cast<std::uint32_t>((ticket >> 32) - 1);
  const auto piece = static_cast<std::uint32_t>(ticket);
  ServerShard& read = *shards_[number];
  if (read.valueRead(piece)) pipelineOf(number).post({&read, ShardTask::advance, piece});
}

void ServerLoop::tick() {
  if (stop_ != nullptr && stop_->load(std::memory_order_acquire)) {
    throw Error(ErrorCode::closed, "the server was stopped before its workers had left");
  }
  const auto now = Deadline::Clock::now();
  checkDeadlines(now);
  if (!anyPending()) return;
  for (std::uint32_t number = 0; number < shards_.size(); ++number) {
    ServerShard* const each = shards_[number].get();
    if (each == nullptr) continue;
    pipelineOf(number).post({each, ShardTask::tick, 0, {}, now, options_.timeoutMs});
  }
}

void ServerLoop::receive(const WireMessage& message) {
  if (message.source >= options_.workers) {
    wire_.release(message.token);
    return;
  }
  Stream& from = stream(message.source);
  from.heardAt = Deadline::Clock::now();
  if (ServerTrace* const trace = context_.tracing()) note(*trace, message);
  // Presence requests are answered even while the worker's other messages wait.
  if (from.control && headerOf(message).type != MessageType::deadNodes) {
    from.backlog.push_back(message);
  } else {
    dispatch(message);
  }
}

void ServerLoop::dispatch(const WireMessage& message) {
  const Header header = headerOf(message);
  const int worker = message.source;
  switch (header.type) {
    case MessageType::init:
    case MessageType::push:
    case MessageType::pull:
    case MessageType::pullRows:
      return toShard(header, message);
    case MessageType::define:
      define(header, message);
      break;
    case MessageType::setCompression:
      setCompression(message);
      break;
    case MessageType::barrier:
      stream(worker).barrier = header.request;
      stream(worker).waitsSince.reset();
      checkBarrier();
      break;
    case MessageType::command:
      answerCommand(header, message);
      break;
    case MessageType::deadNodes: {
      const double lost = lostRanks_;
      context_.replies.answer(worker, MessageType::done, header.request, &lost, sizeof(lost));
      break;
    }
    case MessageType::report: {
      const std::string text = reportText();
      context_.replies.answer(worker, MessageType::done, header.request, text.data(), text.size());
      break;
    }
    case MessageType::leave:
      setStanding(worker, Standing::left);
      context_.replies.done(worker, header.request);
      break;
    default:
      if (!isControl(header.type)) {
        throw Error(ErrorCode::mismatch, "worker " + std::to_string(worker) +
                                             " sent a server's message; do all run the same "
                                             "version of gradlink?")
            .withRank(worker);
      }
      stream(worker).control = message;
      stream(worker).waitsSince.reset();
      return;  // released once carried out
  }
  wire_.release(message.token);
}

void ServerLoop::define(const Header& header, const WireMessage& message) {
  const std::string name(static_cast<const char*>(message.payload), message.bytes);
  if (header.shard >= shards_.size() + kMostAhead || header.count == 0 || header.request == 0 ||
      std::max({header.count, header.round, header.request}) > kMostElements) {
    throw Error(ErrorCode::mismatch, "key " + name + ": not a shard").withRank(message.source);
  }
  if (header.shard >= shards_.size()) shards_.resize(header.shard + 1);
  std::unique_ptr<ServerShard>& known = shards_[header.shard];
  if (known == nullptr) {
    known = std::make_unique<ServerShard>(context_, pipelineOf(header.shard).merger(), header, name,
                                          valueMemory(header.count * sizeOf(header.dtype)));
  } else if (!known->agreesWith(header, name)) {
    throw Error(ErrorCode::mismatch,
                "init: worker " + std::to_string(message.source) + " initialised key " + name +
                    " with " + std::to_string(header.count) + " elements of " +
                    nameOf(header.dtype) + rowsOf(header.request) +
                    " (on this server), where another initialised key " + known->name() + " with " +
                    std::to_string(known->count()) + " of " + nameOf(known->dtype()) +
                    rowsOf(known->rowLength()) +
                    "; all workers must initialise the same keys in the same order")
        .withRank(message.source)
        .withOp("init");
  }
}

void* ServerLoop::valueMemory(std::size_t bytes) {
  if (bytes >= kOwnMemoryBytes) return wire_.allocate(bytes);
  const std::size_t wanted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (chunkLeft_ < wanted) {
    chunk_ = static_cast<std::byte*>(wire_.allocate(kChunkBytes));
    chunkLeft_ = kChunkBytes;
  }
  chunkLeft_ -= wanted;
  return std::exchange(chunk_, chunk_ + wanted);
}

ServerShard& ServerLoop::shard(std::uint32_t number) {
  if (number >= shards_.size() || shards_[number] == nullptr) {
    throw Error(ErrorCode::mismatch,
                "a worker used shard " + std::to_string(number) + " before it was defined");
  }
  return *shards_[number];
}

void ServerLoop::toShard(const Header& header, const WireMessage& message) {
  ServerShard& to = shard(header.shard);
  if (header.type == MessageType::push) {
    context_.pending[static_cast<std::size_t>(message.source)].fetch_add(1);
  }
  pipelineOf(header.shard).post({&to, ShardTask::message, 0, message}, single_);
}

bool ServerLoop::anyPending() const {
  return std::any_of(context_.pending.begin(), context_.pending.end(),
                     [](const auto& pieces) { return pieces.load() != 0; });
}

void ServerLoop::answerCommand(const Header& header, const WireMessage& message) {
  const std::string text(static_cast<const char*>(message.payload), message.bytes);
  // The command may end the trace, which must include everything before.
  if (context_.tracing() != nullptr) drainPipelines();
  try {
    if (options_.onCommand) options_.onCommand(message.source, text);
    context_.replies.done(message.source, header.request);
  } catch (const std::exception& error) {
    context_.replies.failed(message.source, header.request, Error(ErrorCode::system, error.what()));
  }
}

void ServerLoop::checkBarrier() {
  bool asked = false;
  for (int worker = 0; worker < options_.workers; ++worker) {
    const bool waits = stream(worker).barrier.has_value();
    if (!waits && standing(worker) == Standing::active) return;
    asked = asked || waits;
  }
  if (!asked) return;
  for (int worker = 0; worker < options_.workers; ++worker) {
    // All workers know the rules that worker 0 has set: a later call of theirs means the next rule.
    stream(worker).rules = rules_.size();
    if (!stream(worker).barrier) continue;
    context_.replies.done(worker, *stream(worker).barrier);
    stream(worker).barrier.reset();
  }
}

void ServerLoop::drainPipelines() {
  for (auto& pipeline : pipelines_) pipeline->drain();
}

// Rounds may close without the worker, or turn out never to close.
void ServerLoop::setStanding(int worker, Standing standing) {
  drainPipelines();
  context_.standing[static_cast<std::size_t>(worker)] = standing;
  for (std::uint32_t number = 0; number < shards_.size(); ++number) {
    ServerShard* const each = shards_[number].get();
    if (each == nullptr) continue;
    if (standing == Standing::lost) each->forget(worker);
    pipelineOf(number).post({each, ShardTask::advanceAll});
  }
  checkBarrier();
}

void ServerLoop::left(int rank) {
  if (rank >= options_.workers) return;
  stream(rank).ended = true;
  stream(rank).endedAt = Deadline::Clock::now();
}

void ServerLoop::lost(int rank) {
  ++lostRanks_;
  if (rank >= options_.workers) {
    throw Error(ErrorCode::peerLost, "server " + std::to_string(rank - options_.workers) +
                                         " (rank " + std::to_string(rank) +
                                         ") was lost: its process ended")
        .withRank(rank);
  }
  Stream& from = stream(rank);
  from.control.reset();
  from.backlog.clear();
  from.barrier.reset();
  // Nobody waits for a worker that announced its leaving.
  const bool tolerated =
      standing(rank) == Standing::left || (options_.asynchronous && options_.tolerateWorkerLoss);
  if (!tolerated) {
    from.over = true;
    throw Error(ErrorCode::peerLost,
                "worker " + std::to_string(rank) + " was lost: its process ended")
        .withRank(rank);
  }
  end(rank, Standing::lost);
}

void ServerLoop::end(int worker, Standing standing) {
  stream(worker).over = true;
  stream(worker).barrier.reset();
  setStanding(worker, standing);
}

bool ServerLoop::allOver() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.over; });
}

ServerReport ServerLoop::report() {
  drainPipelines();
  ServerReport report;
  report.server = wire_.rank() - options_.workers;
  for (const auto& each : shards_) {
    if (each == nullptr) continue;
    ++report.shards;
    report.elements += each->count();
  }
  for (const std::uint64_t bytes : wire_.bytesReceived()) report.bytesReceived += bytes;
  for (const std::uint64_t bytes : wire_.bytesSent()) report.bytesSent += bytes;
  for (auto& pipeline : pipelines_) {
    report.merge += pipeline->merger().mergeSeconds();
    report.update += pipeline->merger().updateSeconds();
  }
  report.pipelines = static_cast<int>(pipelines_.size());
  report.wait = wait_;
  return report;
}

std::string ServerLoop::reportText() {
  const ServerReport r = report();
  return "{\"server\":" + std::to_string(r.server) + ",\"shards\":" + std::to_string(r.shards) +
         ",\"elements\":" + std::to_string(r.elements) +
         ",\"bytesReceived\":" + std::to_string(r.bytesReceived) +
         ",\"bytesSent\":" + std::to_string(r.bytesSent) + ",\"merge\":" + std::to_string(r.merge) +
         ",\"update\":" + std::to_string(r.update) +
         ",\"pipelines\":" + std::to_string(r.pipelines) + ",\"wait\":" + std::to_string(r.wait) +
         "}";
}

}  // namespace gradlink::dist

namespace gradlink {

ServerReport serve(std::unique_ptr<Wire> wire, const ServerOptions& options,
                   const std::atomic<bool>* stop) {
  constexpr double kMostClosingMs = 5000;
  const auto close = [&] {
    wire->close(Deadline::in(std::min(options.timeoutMs, kMostClosingMs)));
  };
  ServerReport report;
  try {
    // The loop's threads end before the wire.
    dist::ServerLoop loop(*wire, options, stop);
    loop.run();
    report = loop.report();
  } catch (...) {
    close();
    throw;
  }
  close();
  return report;
}

}  // namespace gradlink

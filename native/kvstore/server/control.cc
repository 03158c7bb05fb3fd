// A server's operations on all of its shards: optimizers, rates, states, compression.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "kvstore/server/loop.h"
#include "kvstore/store_checks.h"

namespace gradlink::dist {
namespace {

/// A death is noticed within 10 ms; later on a loaded machine.
constexpr std::chrono::milliseconds kBlameAfter(250);

std::span<const std::uint8_t> bytesOf(const WireMessage& message) {
  return {static_cast<const std::uint8_t*>(message.payload), message.bytes};
}

}  // namespace

void ServerLoop::pumpStreams() {
  bool again = true;
  while (again) {
    again = false;
    bool waits = false;
    for (int worker = 0; worker < options_.workers; ++worker) {
      Stream& from = stream(worker);
      if (from.over) continue;
      if (from.control) {
        context_.pendingAwaited.store(true, std::memory_order_seq_cst);
        const WireMessage control = *from.control;
        if (!carryOut(worker, control)) {
          waits = true;
          continue;
        }
        wire_.release(control.token);
        from.control.reset();
        while (!from.control && !from.backlog.empty()) {
          const WireMessage next = from.backlog.front();
          from.backlog.pop_front();
          dispatch(next);
        }
        again = true;
      } else if (from.ended && mayEnd(worker)) {
        end(worker, standing(worker) == Standing::left ? Standing::left : Standing::closed);
      }
    }
    if (!waits) context_.pendingAwaited.store(false, std::memory_order_seq_cst);
  }
}

// A worker may close because it saw another rank die. If this server is the last to see that death,
// it would blame the wrong one, so it waits.
bool ServerLoop::mayEnd(int worker) const {
  const bool allEnded = std::all_of(streams_.begin(), streams_.end(),
                                    [](const Stream& s) { return s.ended || s.over; });
  return standing(worker) == Standing::left || allEnded ||
         Deadline::Clock::now() - stream(worker).endedAt >= kBlameAfter;
}

// False if it must wait.
bool ServerLoop::carryOut(int worker, const WireMessage& control) {
  if (context_.pending[static_cast<std::size_t>(worker)].load(std::memory_order_seq_cst) != 0) {
    return false;
  }
  drainPipelines();
  const Header header = headerOf(control);
  try {
    switch (header.type) {
      case MessageType::setOptimizer:
      case MessageType::loadStates:
        if (!setRule(worker, header, control)) return false;
        break;
      case MessageType::saveStates:
        saveStates(worker, header);
        return true;
      default: {
        double rate = 0;
        if (control.bytes != sizeof(rate)) throw storeMisuse("setLearningRate: not a number");
        std::memcpy(&rate, control.payload, sizeof(rate));
        changeLearningRate(context_.optimizer.get(), rate);
      }
    }
    context_.replies.done(worker, header.request);
  } catch (const Error& error) {
    context_.replies.failed(worker, header.request, error);
  }
  return true;
}

// Whether it waits for worker 0 to set the same rule.
bool ServerLoop::waitsForRule(int worker) const {
  const Stream& from = stream(worker);
  if (worker == 0 || !from.control || from.rules < rules_.size()) return false;
  const MessageType type = headerOf(*from.control).type;
  return type == MessageType::setOptimizer || type == MessageType::loadStates;
}

// Workers wait for other workers: those are to blame, not the servers.
void ServerLoop::checkDeadlines(Deadline::Clock::time_point now) {
  const auto tooLate = [&](int missing, const std::string& what) {
    throw Error(ErrorCode::timeout, what + " within " +
                                        std::to_string(static_cast<long>(options_.timeoutMs)) +
                                        " ms; timeoutMs sets the deadline")
        .withRank(missing);
  };
  for (int worker = 0; worker < options_.workers; ++worker) {
    Stream& from = stream(worker);
    const bool forRule = waitsForRule(worker);
    if (from.over || (!from.barrier && !forRule)) {
      from.waitsSince.reset();
      continue;
    }
    if (!from.waitsSince) from.waitsSince = now;
    const std::chrono::duration<double, std::milli> waited = now - *from.waitsSince;
    if (waited.count() <= options_.timeoutMs) continue;
    if (forRule) tooLate(0, "worker 0 did not set the optimizer or states that others have set");
    for (int other = 0; other < options_.workers; ++other) {
      if (stream(other).barrier || standing(other) != Standing::active) continue;
      tooLate(other, "barrier: worker " + std::to_string(other) + " did not arrive");
    }
  }
}

// A value that is not read does not tell by whom. Waiting workers send presence requests, so the
// worker silent for longest is to blame.
Error ServerLoop::blamed(const Error& error) const {
  if (error.code != ErrorCode::timeout || error.rank >= 0) return error;
  int silent = -1;
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (stream(worker).over || standing(worker) != Standing::active) continue;
    if (silent < 0 || stream(worker).heardAt < stream(silent).heardAt) silent = worker;
  }
  if (silent < 0) return error;
  return Error(error.code, std::string(error.what()) + " (worker " + std::to_string(silent) +
                               " has been silent for longest)")
      .withRank(silent)
      .withOp(error.op);
}

// Worker 0's rule counts; the others' mark the point where they switch to it.
bool ServerLoop::setRule(int worker, const Header& header, const WireMessage& message) {
  Stream& from = stream(worker);
  if (worker != 0) {
    if (from.rules >= rules_.size()) {
      if (!stream(0).over) return false;
      throw Error(ErrorCode::peerLost, "worker 0 ended before it had set the optimizer or states")
          .withRank(0);
    }
    if (const auto& failure = rules_[from.rules++]) throw *failure;
    return true;
  }
  try {
    if ((header.flags & kWithdrawn) != 0) {
      const bool known = header.code >= 0 && header.code <= static_cast<int>(ErrorCode::system);
      throw Error(known ? static_cast<ErrorCode>(header.code) : ErrorCode::invalidArgument,
                  std::string(static_cast<const char*>(message.payload), message.bytes))
          .stillUsable();
    }
    if (header.type == MessageType::setOptimizer) {
      setOptimizer(message);
    } else {
      loadStates(message);
    }
    rules_.emplace_back();
  } catch (const Error& error) {
    rules_.emplace_back(error);
    throw;
  }
  return true;
}

void ServerLoop::setOptimizer(const WireMessage& message) {
  std::shared_ptr<Optimizer> optimizer;
  if (message.bytes > 0) {
    const LoadedStates loaded = gradlink::loadStates(bytesOf(message));
    if (!loaded.spec) throw storeMisuse("setOptimizer: the message has no optimizer");
    optimizer = Optimizer::create(*loaded.spec);
  }
  context_.updater = nullptr;
  context_.optimizer = std::move(optimizer);
  for (const auto& each : shards_) {
    if (each != nullptr) each->setState(nullptr);
  }
}

void ServerLoop::loadStates(const WireMessage& message) {
  const auto named = [this](const std::string& key) -> ServerShard* {
    for (const auto& each : shards_) {
      if (each != nullptr && each->name() == key) return each.get();
    }
    return nullptr;
  };
  FittingStates loaded =
      fittingStates(gradlink::loadStates(bytesOf(message)), "the states", context_.optimizer,
                    [&](const std::string& key) -> std::optional<StateShape> {
                      const ServerShard* const each = named(key);
                      if (each == nullptr) return std::nullopt;
                      return StateShape{each->dtype(), each->count(), each->rowLength()};
                    });
  context_.updater = nullptr;
  context_.optimizer = loaded.optimizer;
  for (const auto& each : shards_) {
    if (each != nullptr) each->setState(nullptr);
  }
  for (auto& state : loaded.states) {
    ServerShard* const owner = named(state->key);
    owner->setState(std::move(state));
  }
}

void ServerLoop::saveStates(int worker, const Header& header) {
  checkSaveable(context_.optimizer.get());
  std::vector<const OptimizerState*> states;
  for (const auto& each : shards_) {
    if (each != nullptr && each->state() != nullptr) states.push_back(each->state());
  }
  const auto bytes =
      gradlink::saveStates(*context_.optimizer, states, (header.flags & kDumpOptimizer) != 0);
  context_.replies.answer(worker, MessageType::states, header.request, bytes.data(), bytes.size());
}

void ServerLoop::setCompression(const WireMessage& message) {
  CompressionTerms terms{};
  if (message.bytes != sizeof(terms)) {
    throw Error(ErrorCode::mismatch, "setCompression: invalid terms").withRank(message.source);
  }
  std::memcpy(&terms, message.payload, sizeof(terms));
  if (terms.encoding < 1 || terms.encoding > 4) {
    throw Error(ErrorCode::mismatch, "setCompression: an unknown compression")
        .withRank(message.source);
  }
  const GradientCompression wanted(static_cast<CompressionType>(terms.encoding - 1),
                                   terms.threshold);
  if (context_.compression && (context_.compression->type() != wanted.type() ||
                               context_.compression->threshold() != wanted.threshold())) {
    throw Error(ErrorCode::mismatch,
                "worker " + std::to_string(message.source) + " set the gradient compression " +
                    wanted.name() + " with threshold " + std::to_string(wanted.threshold()) +
                    ", another " + context_.compression->name() + " with threshold " +
                    std::to_string(context_.compression->threshold()) +
                    "; all workers must set the same")
        .withRank(message.source);
  }
  drainPipelines();
  context_.compression = wanted;
}

}  // namespace gradlink::dist

#include "kvstore/worker/dist_store.h"

#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "kvstore/keyed_store.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/worker/dist_engine.h"
#include "kvstore/worker/states.h"

namespace gradlink {
namespace {

using dist::DistKey;
using dist::DistRequest;
using dist::MessageType;
using dist::Shard;

using Bytes = std::vector<std::uint8_t>;

std::uint32_t encodingOf(const GradientCompression& compression) {
  switch (compression.type()) {
    case CompressionType::twoBit:
      return static_cast<std::uint32_t>(dist::Encoding::twoBit);
    case CompressionType::oneBit:
      return static_cast<std::uint32_t>(dist::Encoding::oneBit);
    case CompressionType::float16:
      return static_cast<std::uint32_t>(dist::Encoding::float16);
    case CompressionType::bfloat16:
      return static_cast<std::uint32_t>(dist::Encoding::bfloat16);
  }
  return static_cast<std::uint32_t>(dist::Encoding::plain);
}

/// Some optimizers need the norm of a whole key or row, but servers have parts of cut ones.
void checkWhole(const Optimizer& optimizer, const std::string& key, std::size_t shards,
                bool cutsRows) {
  if (shards < 2 || !optimizer.math().needsWhole()) return;
  if (optimizer.math().isByRow() && !cutsRows) return;
  throw storeUnsupported(optimizer.spec().name + " needs the norm of whole " +
                         (optimizer.math().isByRow() ? "rows" : "keys") + ", but key " + key +
                         " is cut over " + std::to_string(shards) +
                         " servers: raise bigArrayBound above its length");
}

class DistStore final : public KeyedStore<DistKey> {
 public:
  DistStore(std::unique_ptr<Wire> wire, const DistStoreOptions& options)
      : options_(options),
        placer_(options.servers, options.bigArrayBound),
        engine_(std::move(wire), options) {}

  void submit(std::vector<Operation> operations, bool here) override;
  bool look() override { return engine_.look(); }
  void setOptimizer(std::shared_ptr<Optimizer>) override;
  void setLearningRate(double value, std::shared_ptr<Ticket>) override;
  void setUpdater(std::shared_ptr<ExternalUpdater>) override;
  void setCompression(const GradientCompression&) override;
  void barrier(std::shared_ptr<Ticket>) override;
  void saveStates(const std::string& file, bool dumpOptimizer, std::shared_ptr<Ticket>) override;
  void loadStates(const std::string& file, std::shared_ptr<Ticket>) override;
  void stop() override { engine_.stop(true); }
  void drop() override { engine_.stop(false); }

  void* allocShared(std::size_t bytes) override { return engine_.allocShared(bytes); }
  void freeShared(void* memory) override { engine_.freeShared(memory); }
  void check(const UpdateRule&) const override;
  std::vector<ShardPlace> placement() const override;
  WorkerReport report() const override { return engine_.report(); }
  void serverReports(std::shared_ptr<std::vector<std::string>> into,
                     std::shared_ptr<Ticket>) override;
  void command(const std::string& op, const std::string& text, std::shared_ptr<Ticket>) override;
  int deadNodes() const override { return engine_.lostRanks(); }
  void leave(std::shared_ptr<Ticket>) override;

 private:
  std::unique_ptr<DistKey> makeKey(Key) override;
  std::vector<DistRequest::Question> askAll(MessageType type, const Bytes& payload = {},
                                            std::uint8_t flags = 0) const;
  std::vector<DistRequest::Question> loadQuestions(const std::string& file,
                                                   std::shared_ptr<Optimizer>& loaded) const;

  const DistStoreOptions options_;

  // ---- guarded by the keys' lock, which also keeps their order equal in the engine
  dist::ShardPlacer placer_;
  std::unique_ptr<const GradientCompression> compression_;

  /// The servers' optimizer as set by this worker, used by the engine's thread. newestOptimizer_ is
  /// the last one submitted.
  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<Optimizer> newestOptimizer_;

  dist::DistEngine engine_;  // last: its thread uses the rest
};

std::unique_ptr<DistKey> DistStore::makeKey(Key made) {
  auto key = std::make_unique<DistKey>(std::move(made));
  if (newestOptimizer_ && key->count >= options_.bigArrayBound) {
    checkWhole(*newestOptimizer_, key->name, static_cast<std::size_t>(options_.servers),
               placer_.cutsRows(key->count, key->rowLength));
  }
  key->shards = placer_.place(key->count, key->dtype, key->rowLength);
  key->compression = key->dtype == DType::float32 ? compression_.get() : nullptr;
  engine_.define(*key);
  return key;
}

void DistStore::submit(std::vector<Operation> operations, bool here) {
  std::vector<std::pair<DistKey*, Operation>> checked;
  checked.reserve(operations.size());
  forEachChecked(operations, [&](DistKey& key, Operation& operation) {
    if (!operation.inRows.empty() && key.compression) throw noCompressedRows(key.name);
    checked.emplace_back(&key, std::move(operation));
  });
  engine_.submit(std::move(checked), here);
}

/// The same question for every server.
std::vector<DistRequest::Question> DistStore::askAll(MessageType type, const Bytes& payload,
                                                     std::uint8_t flags) const {
  return std::vector<DistRequest::Question>(static_cast<std::size_t>(options_.servers),
                                            {type, flags, payload});
}

void DistStore::setOptimizer(std::shared_ptr<Optimizer> optimizer) {
  {
    const std::lock_guard lock(keysMutex_);
    for (const DistKey* key : keys_.all()) {
      if (!optimizer) continue;
      checkWhole(*optimizer, key->name, key->shards.size(),
                 placer_.cutsRows(key->count, key->rowLength));
    }
    newestOptimizer_ = optimizer;
  }
  DistRequest request;
  request.name = "setOptimizer";
  request.ask = [this, optimizer = std::move(optimizer)](DistRequest&) {
    optimizer_ = optimizer;
    // Worker 0's optimizer counts; the others' questions are answered once it is set.
    const bool tells = optimizer && engine_.rank() == 0;
    return askAll(MessageType::setOptimizer,
                  tells ? gradlink::saveStates(*optimizer, {}, true) : Bytes());
  };
  engine_.request(std::move(request));
}

void DistStore::setLearningRate(double value, std::shared_ptr<Ticket> ticket) {
  DistRequest request;
  request.name = "setLearningRate";
  request.ask = [this, value](DistRequest&) {
    if (optimizer_) changeLearningRate(optimizer_.get(), value);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    return askAll(MessageType::setLearningRate, Bytes(bytes, bytes + sizeof value));
  };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

void DistStore::setUpdater(std::shared_ptr<ExternalUpdater> updater) {
  check({nullptr, std::move(updater)});
}

void DistStore::check(const UpdateRule& rule) const {
  // Also null: there is nothing to remove.
  if (rule.optimizer) return;
  throw storeUnsupported(
      "setUpdater: values of a store with servers are updated on the servers: give the function to "
      "serveJob({ updater }), or use setOptimizer");
}

void DistStore::setCompression(const GradientCompression& compression) {
  const std::lock_guard lock(keysMutex_);
  checkCompressible(false, compression_ != nullptr);
  compression_ = std::make_unique<const GradientCompression>(compression);
  for (DistKey* const key : keys_.all()) {
    if (key->dtype == DType::float32) key->compression = compression_.get();
  }
  engine_.setCompression({encodingOf(compression), compression.threshold()});
}

void DistStore::barrier(std::shared_ptr<Ticket> ticket) {
  DistRequest request;
  request.name = "barrier";
  request.ask = [this](DistRequest&) { return askAll(MessageType::barrier); };
  request.reportsFailures = true;
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

void DistStore::saveStates(const std::string& file, bool dumpOptimizer,
                           std::shared_ptr<Ticket> ticket) {
  auto parts = std::make_shared<std::vector<Bytes>>(static_cast<std::size_t>(options_.servers));
  DistRequest request;
  request.name = "saveOptimizerStates";
  request.ask = [this, dumpOptimizer](DistRequest&) {
    return askAll(MessageType::saveStates, {}, dumpOptimizer ? dist::kDumpOptimizer : 0);
  };
  request.answer = [parts](std::size_t server, std::span<const std::uint8_t> payload) {
    (*parts)[server].assign(payload.begin(), payload.end());
  };
  request.finish = [parts, file] { dist::writeStateParts(file, *parts); };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

void DistStore::loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) {
  auto loaded = std::make_shared<std::shared_ptr<Optimizer>>();
  DistRequest request;
  request.name = "loadOptimizerStates";
  request.ask = [this, file, loaded](DistRequest& self) {
    // As with the optimizer, worker 0's file counts.
    if (engine_.rank() != 0) return askAll(MessageType::loadStates);
    try {
      return loadQuestions(file, *loaded);
    } catch (const Error& error) {
      // The waiting workers get the error.
      self.failure = std::current_exception();
      const std::string text = error.what();
      auto told =
          askAll(MessageType::loadStates, Bytes(text.begin(), text.end()), dist::kWithdrawn);
      for (auto& question : told) question.code = static_cast<std::int32_t>(error.code);
      return told;
    }
  };
  request.finish = [this, loaded] {
    if (*loaded) optimizer_ = *loaded;
  };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

/// Each server's part of a file. On the engine's thread.
std::vector<DistRequest::Question> DistStore::loadQuestions(
    const std::string& file, std::shared_ptr<Optimizer>& loaded) const {
  LoadedStates states = dist::readStateParts(file);
  const bool withOptimizer = states.spec.has_value();
  // Only keys that the servers know.
  std::unordered_map<std::string, const DistKey*> named;
  for (const DistKey* key : engine_.keys()) named.emplace(key->name, key);
  const FittingStates fitting =
      fittingStates(std::move(states), file, optimizer_, [&](const std::string& name) {
        const auto found = named.find(name);
        return shapeOf(found == named.end() ? nullptr : found->second);
      });
  std::vector<dist::StateOfKey> ofKeys;
  ofKeys.reserve(fitting.states.size());
  for (const auto& state : fitting.states) {
    const DistKey& key = *named.at(state->key);
    const std::vector<Shard>& shards = key.shards;
    checkWhole(*fitting.optimizer, state->key, shards.size(),
               placer_.cutsRows(key.count, key.rowLength));
    ofKeys.push_back({state.get(), shards});
  }
  std::vector<DistRequest::Question> questions;
  questions.reserve(static_cast<std::size_t>(options_.servers));
  for (int server = 0; server < options_.servers; ++server) {
    questions.push_back({MessageType::loadStates, 0,
                         dist::statesFor(server, *fitting.optimizer, ofKeys, withOptimizer)});
  }
  loaded = fitting.optimizer;
  return questions;
}

std::vector<ShardPlace> DistStore::placement() const {
  const std::lock_guard lock(keysMutex_);
  std::vector<ShardPlace> places;
  for (const DistKey* key : keys_.all()) {
    for (const Shard& shard : key->shards) {
      places.push_back({key->name, shard.server, shard.first, shard.count});
    }
  }
  return places;
}

void DistStore::serverReports(std::shared_ptr<std::vector<std::string>> into,
                              std::shared_ptr<Ticket> ticket) {
  into->assign(static_cast<std::size_t>(options_.servers), std::string());
  DistRequest request;
  request.name = "report";
  request.ask = [this](DistRequest&) { return askAll(MessageType::report); };
  request.answer = [into](std::size_t server, std::span<const std::uint8_t> payload) {
    (*into)[server].assign(payload.begin(), payload.end());
  };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

void DistStore::command(const std::string& op, const std::string& text,
                        std::shared_ptr<Ticket> ticket) {
  DistRequest request;
  request.name = op;
  request.ask = [this, text](DistRequest&) {
    return askAll(MessageType::command, Bytes(text.begin(), text.end()));
  };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

void DistStore::leave(std::shared_ptr<Ticket> ticket) {
  DistRequest request;
  request.name = "leave";
  request.ask = [this](DistRequest&) {
    engine_.leaveRounds();
    return askAll(MessageType::leave);
  };
  request.ticket = std::move(ticket);
  engine_.request(std::move(request));
}

}  // namespace

std::unique_ptr<Store> makeDistStore(std::unique_ptr<Wire> wire, const DistStoreOptions& options) {
  return std::make_unique<DistStore>(std::move(wire), options);
}

}  // namespace gradlink

#include "kvstore/gpu/gpu_store.h"

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kvstore/base/whole_file.h"
#include "kvstore/gpu/device_site.h"
#include "kvstore/gpu/gpu_engine.h"
#include "kvstore/gpu/host_site.h"
#include "kvstore/gpu/keys.h"
#include "kvstore/gpu/prepared.h"
#include "kvstore/gpu/shards.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/state_parts.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

class GpuStore final : public Store {
 public:
  explicit GpuStore(const GpuStoreOptions& options)
      : keys_(options.gpus),
        onHost_(options.merge == GpuMerge::host),
        sharded_(options.shardOptimizer),
        leastShardBytes_(options.leastShardBytes),
        site_(makeSite(options)),
        engine_(*site_, [this](GpuItem& item) { rule_.admit(kindOf(item), item.key(), item); }) {}
  ~GpuStore() override;

  KeyId define(const std::string& name, DType, std::size_t count, std::size_t rowLength) override;
  void submit(std::vector<Operation> operations, bool here = false) override;
  std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations) override {
    return std::make_unique<GpuPreparedCall>(engine_, requestsOf(std::move(operations)));
  }
  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    if (optimizer && !onHost_ && !runsOnGpus(optimizer->math().kernel)) {
      throw storeUnsupported(optimizer->spec().name +
                             " has no kernels for GPUs: use a store of type 'local', which steps "
                             "on the host, or one with servers");
    }
    if (optimizer && sharded_ && optimizer->math().needsWhole()) {
      refuseInShards(optimizer->spec().name + ", which needs a norm of the whole array");
    }
    engine_.apply([this, optimizer = std::move(optimizer)] {
      rule_ = {optimizer, nullptr};
      if (optimizer && device_ != nullptr) device_->loadSteps(*optimizer);
    });
  }
  void setLearningRate(double value, std::shared_ptr<Ticket> ticket) override {
    engine_.fence([this, value] { changeLearningRate(rule_.optimizer.get(), value); },
                  std::move(ticket));
  }
  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    if (sharded_ && updater) refuseInShards("an outside function, which gets whole arrays");
    engine_.apply([this, updater = std::move(updater)] { rule_ = {nullptr, updater}; });
  }
  void setCompression(const GradientCompression&) override;
  void barrier(std::shared_ptr<Ticket> ticket) override {
    engine_.fence(nullptr, std::move(ticket));
  }
  void saveStates(const std::string& file, bool dumpOptimizer,
                  std::shared_ptr<Ticket> ticket) override {
    engine_.fence([this, file, dumpOptimizer] { writeStates(file, dumpOptimizer); },
                  std::move(ticket));
  }
  void loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) override {
    engine_.fence([this, file] { readStates(file); }, std::move(ticket));
  }
  void stop() override { engine_.stop(); }

 private:
  [[noreturn]] static void refuseInShards(const std::string& what) {
    throw storeUnsupported("with shardOptimizer each GPU steps a part of a key, without " + what +
                           ": open the store without shardOptimizer");
  }
  std::unique_ptr<GpuValueSite> makeSite(const GpuStoreOptions& options);
  void makeRoom(GpuKey& key);
  std::vector<GpuRequest> requestsOf(std::vector<Operation> operations) const;
  std::size_t placeOf(int gpu) const;
  void writeStates(const std::string& file, bool dumpOptimizer);
  void readStates(const std::string& file);

  GpuKeys keys_;
  const bool onHost_;
  const bool sharded_;
  const std::size_t leastShardBytes_;
  std::unique_ptr<const GradientCompression> compression_;
  /// Of the engine's thread.
  UpdateRule rule_;

  GpuDeviceSite* device_ = nullptr;  // the site, of whichever kind it is
  GpuHostSite* host_ = nullptr;
  std::unique_ptr<GpuValueSite> site_;
  GpuEngine engine_;  // last: its thread uses the rest
};

GpuStore::~GpuStore() {
  stop();
  if (!engine_.lost()) return;
  // A device still uses this memory, and freeing it would wait for the device forever.
  static_cast<void>(site_.release());
  keys_.abandon();
}

std::unique_ptr<GpuValueSite> GpuStore::makeSite(const GpuStoreOptions& options) {
  const auto wake = [this] { engine_.wake(); };
  if (onHost_) {
    if (sharded_) {
      throw storeUnsupported(
          "shardOptimizer shares steps among GPUs, and this store computes on the host: use the "
          "store type 'device'");
    }
    auto site = std::make_unique<GpuHostSite>(options, wake);
    host_ = site.get();
    return site;
  }
  auto site = std::make_unique<GpuDeviceSite>(options, wake);
  device_ = site.get();
  return site;
}

KeyId GpuStore::define(const std::string& name, DType dtype, std::size_t count,
                       std::size_t rowLength) {
  return keys_.define(name, dtype, count, rowLength, [this](GpuKey& key) { makeRoom(key); });
}

void GpuStore::makeRoom(GpuKey& key) {
  const std::size_t places = sharded_ ? device_->places().size() : 0;
  if (sharded_) cutKey(key, places, leastShardBytes_);
  if (key.parts.empty()) return site_->makeRoom(key);
  for (const auto& part : key.parts) {
    if (part->part < places) {
      device_->makeRoomOn(part->part, *part);
    } else {
      site_->makeRoom(*part);
    }
  }
}

void GpuStore::submit(std::vector<Operation> operations, bool /*here*/) {
  engine_.submit(requestsOf(std::move(operations)));
}

std::vector<GpuRequest> GpuStore::requestsOf(std::vector<Operation> operations) const {
  std::vector<GpuRequest> requests =
      keys_.requestsOf(std::move(operations), [this](int gpu) { return placeOf(gpu); });
  if (requests.empty()) return requests;
  for (const GpuOperation& operation : *requests.front().operations) {
    const GpuKey& key = *operation.key;
    const bool compresses = compression_ && key.dtype == DType::float32;
    if (compresses && !operation.inRows.empty()) throw noCompressedRows(key.name);
    const bool ofRows = operation.kind == OperationKind::rowSparsePull || !operation.inRows.empty();
    if (sharded_ && ofRows) refuseInShards("pushes and pulls of rows");
  }
  return requests;
}

std::size_t GpuStore::placeOf(int gpu) const {
  return device_ != nullptr ? device_->places().indexOf(gpu) : host_->placeOf(gpu);
}

void GpuStore::setCompression(const GradientCompression& compression) {
  checkCompressible(onHost_, compression_ != nullptr);
  if (!compression.feedsBack()) {
    throw storeUnsupported(std::string("stores on GPUs compress as 2bit or 1bit, not ") +
                           compression.name());
  }
  compression_ = std::make_unique<const GradientCompression>(compression);
  device_->setCompression(compression_.get());
  engine_.apply([this] { device_->loadCompression(); });
}

void GpuStore::writeStates(const std::string& file, bool dumpOptimizer) {
  checkSaveable(rule_.optimizer.get());
  std::vector<std::unique_ptr<OptimizerState>> copies;
  std::vector<const OptimizerState*> states;
  for (const GpuKey* key : keys_.all()) {
    const GpuKey& first = key->parts.empty() ? *key : *key->parts.front();
    if (!first.state || first.state->optimizer != rule_.optimizer) continue;
    copies.push_back(site_->stateOf(first));
    for (const auto& part : key->parts) {
      if (part->part > 0) appendState(*copies.back(), *site_->stateOf(*part));
    }
    states.push_back(copies.back().get());
  }
  writeFileAtomically(file, gradlink::saveStates(*rule_.optimizer, states, dumpOptimizer));
}

void GpuStore::readStates(const std::string& file) {
  FittingStates loaded = readFittingStates(file, rule_.optimizer, [this](const std::string& name) {
    return shapeOf(keys_.named(name));
  });
  std::vector<std::pair<GpuKey*, std::shared_ptr<KeyState>>> restored;
  if (sharded_ && loaded.optimizer->math().needsWhole()) {
    refuseInShards(loaded.optimizer->spec().name + ", which needs a norm of the whole array");
  }
  const auto restore = [&](GpuKey& key, std::unique_ptr<OptimizerState> from) {
    auto state = loadedState(loaded.optimizer, std::move(from), key);
    site_->restoreState(key, *state);
    restored.emplace_back(&key, std::move(state));
  };
  for (auto& from : loaded.states) {
    GpuKey* const key = keys_.named(from->key);
    for (const auto& part : key->parts) {
      restore(*part, std::make_unique<OptimizerState>(cutState(*from, part->first, part->count)));
    }
    if (key->parts.empty()) restore(*key, std::move(from));
  }
  // Nothing has changed up to here.
  rule_ = {loaded.optimizer, nullptr};
  for (GpuKey* key : keys_.all()) {
    key->state = nullptr;
    for (const auto& part : key->parts) part->state = nullptr;
  }
  for (auto& [key, state] : restored) key->state = std::move(state);
}

}  // namespace

std::unique_ptr<Store> makeGpuStore(const GpuStoreOptions& options) {
  if (options.gpus.empty()) throw storeMisuse("a store of GPUs needs at least one");
  return std::make_unique<GpuStore>(options);
}

}  // namespace gradlink

#include "kvstore/gpu/gpu_store.h"

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kvstore/gpu/device_site.h"
#include "kvstore/gpu/gpu_engine.h"
#include "kvstore/gpu/host_site.h"
#include "kvstore/gpu/prepared.h"
#include "kvstore/gpu/requests.h"
#include "kvstore/gpu/shards.h"
#include "kvstore/keyed_store.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/state_parts.h"

namespace gradlink {
namespace {

class GpuStore final : public ValueStore<GpuKey> {
 public:
  explicit GpuStore(const GpuStoreOptions& options)
      : gpus_(options.gpus),
        onHost_(options.merge == GpuMerge::host),
        sharded_(options.shardOptimizer),
        leastShardBytes_(options.leastShardBytes),
        site_(makeSite(options)),
        engine_(*site_, [this](GpuItem& item) { rule_.admit(kindOf(item), item.key(), item); }) {}
  ~GpuStore() override;

  void submit(std::vector<Operation> operations, bool here = false) override;
  std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations) override {
    return std::make_unique<GpuPreparedCall>(engine_, requestsOf(std::move(operations)));
  }
  void check(const UpdateRule& rule) const override;
  void setCompression(const GradientCompression&) override;
  void stop() override { engine_.stop(); }

 private:
  [[noreturn]] static void refuseInShards(const std::string& what) {
    throw storeUnsupported("with shardOptimizer each GPU steps a part of a key, without " + what +
                           ": open the store without shardOptimizer");
  }
  std::unique_ptr<GpuValueSite> makeSite(const GpuStoreOptions& options);
  std::unique_ptr<GpuKey> makeKey(Key) override;
  std::vector<GpuRequest> requestsOf(std::vector<Operation> operations);
  std::size_t placeOf(int gpu) const;
  void apply(std::function<void()> body) override { engine_.apply(std::move(body)); }
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) override {
    engine_.fence(std::move(body), std::move(ticket));
  }
  void ruleChanged() override {
    if (rule_.optimizer && device_ != nullptr) device_->loadSteps(*rule_.optimizer);
  }
  const OptimizerState* stateOf(const GpuKey&, Copies&) override;
  void restoreKey(GpuKey&, std::unique_ptr<OptimizerState>, const std::shared_ptr<Optimizer>&,
                  Restored&) override;
  void dropState(GpuKey& key) override {
    key.state = nullptr;
    for (const auto& part : key.parts) part->state = nullptr;
  }

  const std::vector<int> gpus_;
  const bool onHost_;
  const bool sharded_;
  const std::size_t leastShardBytes_;
  std::unique_ptr<const GradientCompression> compression_;
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

void GpuStore::check(const UpdateRule& rule) const {
  if (rule.external && sharded_) refuseInShards("an outside function, which gets whole arrays");
  if (!rule.optimizer) return;
  const std::string& name = rule.optimizer->spec().name;
  if (!onHost_ && !runsOnGpus(rule.optimizer->math().kernel)) {
    throw storeUnsupported(name +
                           " has no kernels for GPUs: use a store that steps on the host ('local', "
                           "one with servers, or 'allreduce' without shardOptimizer)");
  }
  if (sharded_ && rule.optimizer->math().needsWhole()) {
    refuseInShards(name + ", which needs a norm of the whole array");
  }
}

std::unique_ptr<GpuKey> GpuStore::makeKey(Key made) {
  auto key = std::make_unique<GpuKey>(std::move(made));
  const std::size_t places = sharded_ ? device_->places().size() : 0;
  if (sharded_) cutKey(*key, places, leastShardBytes_);
  if (key->parts.empty()) site_->makeRoom(*key);
  for (const auto& part : key->parts) {
    if (part->part < places) {
      device_->makeRoomOn(part->part, *part);
    } else {
      site_->makeRoom(*part);
    }
  }
  return key;
}

void GpuStore::submit(std::vector<Operation> operations, bool /*here*/) {
  engine_.submit(requestsOf(std::move(operations)));
}

std::vector<GpuRequest> GpuStore::requestsOf(std::vector<Operation> operations) {
  GpuRequests requests(
      gpus_, [this](int gpu) { return placeOf(gpu); }, operations.size());
  forEachChecked(operations, [&](GpuKey& key, Operation& operation) {
    const bool compresses = compression_ && key.dtype == DType::float32;
    if (compresses && !operation.inRows.empty()) throw noCompressedRows(key.name);
    const bool ofRows = operation.kind == OperationKind::rowSparsePull || !operation.inRows.empty();
    if (sharded_ && ofRows) refuseInShards("pushes and pulls of rows");
    requests.add(key, std::move(operation));
  });
  return requests.take();
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

const OptimizerState* GpuStore::stateOf(const GpuKey& key, Copies& copies) {
  const GpuKey& first = key.parts.empty() ? key : *key.parts.front();
  if (!hasState(first)) return nullptr;
  std::unique_ptr<OptimizerState> copy = site_->stateOf(first);
  if (!copy) return first.state->state.get();
  for (const auto& part : key.parts) {
    if (part->part > 0) appendState(*copy, *site_->stateOf(*part));
  }
  return copies.emplace_back(std::move(copy)).get();
}

void GpuStore::restoreKey(GpuKey& key, std::unique_ptr<OptimizerState> from,
                          const std::shared_ptr<Optimizer>& optimizer, Restored& restored) {
  const auto restore = [&](GpuKey& one, std::unique_ptr<OptimizerState> own) {
    auto state = loadedState(optimizer, std::move(own), one);
    site_->restoreState(one, *state);
    restored.emplace_back(&one, std::move(state));
  };
  for (const auto& part : key.parts) {
    restore(*part, std::make_unique<OptimizerState>(cutState(*from, part->first, part->count)));
  }
  if (key.parts.empty()) restore(key, std::move(from));
}

}  // namespace

std::unique_ptr<SteppingStore> makeGpuStore(const GpuStoreOptions& options) {
  if (options.gpus.empty()) throw storeMisuse("a store of GPUs needs at least one");
  return std::make_unique<GpuStore>(options);
}

}  // namespace gradlink

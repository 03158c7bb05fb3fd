#include "kvstore/gpu/gpu_store.h"

#include <algorithm>
#include <exception>
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
#include "kvstore/gpu/step.h"
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
        sharded_(options.shardOptimizer.value_or(false)),
        leastShardBytes_(options.leastShardBytes),
        site_(makeSite(options)),
        cutsAtWill_(!options.shardOptimizer && device_ != nullptr && device_->sumsByNccl()),
        engine_(*site_, [this](GpuItem& item) { admit(item); }) {}
  ~GpuStore() override;

  KeyId define(const std::string& name, DType dtype, std::size_t count,
               std::size_t rowLength) override;
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
  void admit(GpuItem& item) const;
  void layOut(GpuKey& key, bool written = true);
  void restoreAs(bool cut, GpuKey&, std::unique_ptr<OptimizerState>,
                 const std::shared_ptr<Optimizer>&, Restored&);
  void apply(std::function<void()> body) override;
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) override {
    engine_.fence(std::move(body), std::move(ticket));
  }
  void ruleChanged() override;
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
  /// Keys are cut while that moves less and the rule allows it.
  const bool cutsAtWill_;
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
  if (sharded_ && rule.optimizer->math().needsWhole()) {
    refuseInShards(name + ", which needs a norm of the whole array");
  }
}

std::unique_ptr<GpuKey> GpuStore::makeKey(Key made) {
  auto key = std::make_unique<GpuKey>(std::move(made));
  // What the host steps gains nothing from parts.
  if ((sharded_ || cutsAtWill_) && key->dtype != DType::float64)
    addParts(*key, device_->places().size(), leastShardBytes_);
  if (sharded_ && !key->parts.empty()) {
    device_->makeRoomInParts(*key);
    key->cut = true;
  } else {
    site_->makeRoom(*key);
  }
  return key;
}

KeyId GpuStore::define(const std::string& name, DType dtype, std::size_t count,
                       std::size_t rowLength) {
  const KeyId id = ValueStore::define(name, dtype, count, rowLength);
  // Nothing of it is under way before its init.
  GpuKey* const key = keyNamed(name);
  if (!key->parts.empty()) engine_.apply([this, key] { layOut(*key, false); });
  return id;
}

void GpuStore::admit(GpuItem& item) const {
  const GpuKey& key = item.key();
  if (key.whole != nullptr && key.whole->notJoined) {
    item.error = key.whole->notJoined;
  } else {
    rule_.admit(kindOf(item), item.key(), item);
  }
}

/// A rule may move values between the GPUs: then nothing may be under way.
void GpuStore::apply(std::function<void()> body) {
  if (!cutsAtWill_) return engine_.apply(std::move(body));
  engine_.fence(std::move(body), std::make_shared<Ticket>([](const std::exception_ptr&) {}));
}

void GpuStore::ruleChanged() {
  if (rule_.optimizer && device_ != nullptr) device_->loadSteps(*rule_.optimizer);
  for (GpuKey* const key : allKeys()) layOut(*key);
}

/// Cuts the key or joins it, as is best for the rule. Nothing of it may be under way.
void GpuStore::layOut(GpuKey& key, bool written) {
  if (!cutsAtWill_ || key.parts.empty()) return;
  key.notJoined = nullptr;
  const bool needsWhole = key.ofRows || rule_.external ||
                          (rule_.optimizer && (rule_.optimizer->math().needsWhole() ||
                                               stepsOnHost(key, *rule_.optimizer)));
  const bool wanted = rule_.optimizer && !needsWhole;
  if (wanted == key.cut) return;
  try {
    Restored states;
    // Where a push failed there may be no state, or some of it.
    const auto made = [](const Key& one) { return one.state && one.state->made; };
    const bool all =
        key.cut ? std::ranges::all_of(key.parts, [&](const auto& part) { return made(*part); })
                : made(key);
    if (Copies copies; all && stateOf(key, copies) != nullptr) {
      restoreAs(wanted, key, std::move(copies.back()), rule_.optimizer, states);
    }
    if (wanted) {
      cutValue(key, device_->places(), written);
    } else {
      joinValue(key, device_->places());
    }
    key.cut = wanted;
    dropState(key);
    for (auto& [one, state] : states) one->state = std::move(state);
  } catch (const std::exception&) {
    // As it is it serves as well, with more to move, unless it must be whole.
    if (needsWhole) key.notJoined = std::current_exception();
  }
}

void GpuStore::submit(std::vector<Operation> operations, bool /*here*/) {
  engine_.submit(requestsOf(std::move(operations)));
}

std::vector<GpuRequest> GpuStore::requestsOf(std::vector<Operation> operations) {
  std::vector<GpuKey*> joined;
  GpuRequests requests(
      gpus_, [this](int gpu) { return placeOf(gpu); }, operations.size());
  forEachChecked(operations, [&](GpuKey& key, Operation& operation) {
    const bool compresses = compression_ && key.dtype == DType::float32;
    if (compresses && !operation.inRows.empty()) throw noCompressedRows(key.name);
    const bool ofRows = operation.kind == OperationKind::rowSparsePull || !operation.inRows.empty();
    if (sharded_ && ofRows) refuseInShards("pushes and pulls of rows");
    if (cutsAtWill_ && ofRows && !key.parts.empty() && !key.ofRows.exchange(true)) {
      joined.push_back(&key);
    }
    requests.add(key, std::move(operation));
  });
  for (GpuKey* const key : joined) {
    apply([this, key] { layOut(*key); });
  }
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
  const GpuKey& first = key.cut ? *key.parts.front() : key;
  if (!hasState(first)) return nullptr;
  std::unique_ptr<OptimizerState> copy = site_->stateOf(first);
  if (!copy) return first.state->state.get();
  if (key.cut) {
    for (const auto& part : key.parts) {
      if (part->part > 0) appendState(*copy, *site_->stateOf(*part));
    }
  }
  return copies.emplace_back(std::move(copy)).get();
}

void GpuStore::restoreKey(GpuKey& key, std::unique_ptr<OptimizerState> from,
                          const std::shared_ptr<Optimizer>& optimizer, Restored& restored) {
  restoreAs(key.cut, key, std::move(from), optimizer, restored);
}

void GpuStore::restoreAs(bool cut, GpuKey& key, std::unique_ptr<OptimizerState> from,
                         const std::shared_ptr<Optimizer>& optimizer, Restored& restored) {
  const auto restore = [&](GpuKey& one, std::unique_ptr<OptimizerState> own) {
    auto state = loadedState(optimizer, std::move(own), one);
    site_->restoreState(one, *state);
    restored.emplace_back(&one, std::move(state));
  };
  if (!cut) return restore(key, std::move(from));
  for (const auto& part : key.parts) {
    restore(*part, std::make_unique<OptimizerState>(cutState(*from, part->first, part->count)));
  }
}

}  // namespace

std::unique_ptr<SteppingStore> makeGpuStore(const GpuStoreOptions& options) {
  if (options.gpus.empty()) throw storeMisuse("a store of GPUs needs at least one");
  return std::make_unique<GpuStore>(options);
}

}  // namespace gradlink

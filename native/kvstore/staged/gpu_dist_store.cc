#include "kvstore/staged/gpu_dist_store.h"

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "kvstore/gpu/gpu_engine.h"
#include "kvstore/gpu/prepared.h"
#include "kvstore/gpu/requests.h"
#include "kvstore/keyed_store.h"
#include "kvstore/staged/gpu_dist_site.h"

namespace gradlink {
namespace {

/// Forwards everything but the operations to the inner store, in order.
class StagedStore final : public KeyedStore<GpuKey> {
 public:
  StagedStore(std::unique_ptr<Store> inner, const GpuDistOptions& options)
      : gpus_(options.gpus),
        inner_(std::move(inner)),
        site_(std::make_unique<GpuDistSite>(*inner_, options, [this] { engine_.wake(); })),
        engine_(*site_, [](GpuItem&) {}) {}
  ~StagedStore() override {
    // The inner store uses the keys' memory until it has stopped.
    engine_.stop();
    inner_->stop();
    if (!engine_.lost()) return;
    // A device still uses this memory, and freeing it would wait forever.
    static_cast<void>(site_.release());
    keys_.abandon();
  }

  void submit(std::vector<Operation> operations, bool /*here*/) override {
    engine_.submit(requestsOf(std::move(operations)));
  }
  std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations) override {
    return std::make_unique<GpuPreparedCall>(engine_, requestsOf(std::move(operations)));
  }
  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    if (optimizer) inner_->check({optimizer, nullptr});
    setInOrder([this, optimizer = std::move(optimizer)] { inner_->setOptimizer(optimizer); });
  }
  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    inner_->check({nullptr, updater});
    setInOrder([this, updater = std::move(updater)] { inner_->setUpdater(updater); });
  }
  void check(const UpdateRule& rule) const override { inner_->check(rule); }
  void setCompression(const GradientCompression& compression) override {
    inner_->setCompression(compression);
  }
  void setLearningRate(double value, std::shared_ptr<Ticket> ticket) override {
    inOrder([this, value](auto inner) { inner_->setLearningRate(value, std::move(inner)); },
            std::move(ticket));
  }
  void barrier(std::shared_ptr<Ticket> ticket) override {
    inOrder([this](auto inner) { meet(std::move(inner)); }, std::move(ticket));
  }
  void saveStates(const std::string& file, bool dumpOptimizer,
                  std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto inner) { inner_->saveStates(file, dumpOptimizer, std::move(inner)); },
            std::move(ticket));
  }
  void loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto inner) { inner_->loadStates(file, std::move(inner)); },
            std::move(ticket));
  }
  void leave(std::shared_ptr<Ticket> ticket) override {
    inOrder([this](auto inner) { inner_->leave(std::move(inner)); }, std::move(ticket));
  }
  void serverReports(std::shared_ptr<std::vector<std::string>> into,
                     std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto done) { inner_->serverReports(into, std::move(done)); },
            std::move(ticket));
  }
  void command(const std::string& op, const std::string& text,
               std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto done) { inner_->command(op, text, std::move(done)); },
            std::move(ticket));
  }
  void stop() override {
    engine_.stop();
    inner_->stop();
  }
  void drop() override {
    engine_.stop();
    inner_->drop();
  }
  std::vector<ShardPlace> placement() const override { return inner_->placement(); }
  WorkerReport report() const override { return inner_->report(); }
  int deadNodes() const override { return inner_->deadNodes(); }

 private:
  /// Runs `begin` with a ticket for the inner store, in the order of submission in both stores.
  void inOrder(std::function<void(std::shared_ptr<Ticket>)> begin, std::shared_ptr<Ticket> ticket) {
    // Stores finish tickets under their own locks, so they cannot share one: one of two others
    // does.
    ticket->expect();
    engine_.fence(
        [begin = std::move(begin), ticket] {
          begin(std::make_shared<Ticket>(
              [ticket](std::exception_ptr error) { ticket->finish(std::move(error)); }));
        },
        std::make_shared<Ticket>([ticket](std::exception_ptr error) {
          if (error) ticket->finish(std::move(error));
        }));
  }

  /// A setting in the same order; its error becomes the next barrier's.
  void setInOrder(std::function<void()> set) {
    engine_.fence(
        [this, set = std::move(set)] {
          try {
            set();
          } catch (...) {
            refused_ = std::current_exception();
          }
        },
        std::make_shared<Ticket>([](const std::exception_ptr&) {}));
  }

  std::unique_ptr<GpuKey> makeKey(Key made) override {
    auto key = std::make_unique<GpuKey>(std::move(made));
    // First: it may fail, and a key of the inner store cannot be removed.
    site_->makeRoom(*key);
    // Under the keys' lock, so both stores number keys alike.
    key->id = inner_->define(key->name, key->dtype, key->count, key->rowLength);
    return key;
  }
  std::vector<GpuRequest> requestsOf(std::vector<Operation> operations) {
    GpuRequests requests(
        gpus_, [this](int gpu) { return site_->places().indexOf(gpu); }, operations.size());
    forEachChecked(operations, [&](GpuKey& key, Operation& operation) {
      requests.add(key, std::move(operation));
    });
    return requests.take();
  }

  void meet(std::shared_ptr<Ticket> ticket) {
    if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
    inner_->barrier(std::move(ticket));
  }

  const std::vector<int> gpus_;

  /// A setting's error, for the next barrier. Used by the engine's thread.
  std::exception_ptr refused_;

  std::unique_ptr<Store> inner_;
  std::unique_ptr<GpuDistSite> site_;
  GpuEngine engine_;  // last: its thread uses the rest
};

}  // namespace

std::unique_ptr<Store> makeGpuDistStore(std::unique_ptr<Store> inner,
                                        const GpuDistOptions& options) {
  return std::make_unique<StagedStore>(std::move(inner), options);
}

std::unique_ptr<Store> makeGpuAllreduceStore(std::unique_ptr<Communicator> comm,
                                             AllreduceStoreOptions options,
                                             const GpuDistOptions& gpus) {
  GpuDistOptions summing = gpus;
  summing.onHost = false;
  options.devices = summing.innerDevices();
  std::unique_ptr<SteppingStore> steps;
  if (options.shardOptimizer) {
    // Stepped values come from the host and return there: NCCL would have nothing to do.
    steps = makeGpuStore({.gpus = gpus.gpus,
                          .merge = GpuMerge::peer,
                          .shardOptimizer = true,
                          .leastShardBytes = gpus.leastShardBytes,
                          .timeoutMs = gpus.timeoutMs});
  }
  return std::make_unique<StagedStore>(
      makeAllreduceStore(std::move(comm), options, std::move(steps)), summing);
}

}  // namespace gradlink

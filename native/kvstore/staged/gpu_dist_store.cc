#include "kvstore/staged/gpu_dist_store.h"

#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "kvstore/gpu/gpu_engine.h"
#include "kvstore/gpu/keys.h"
#include "kvstore/gpu/prepared.h"
#include "kvstore/staged/gpu_dist_site.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// What both have in common: everything but the operations is the inner store's, in order.
template <class Inner>
class StagedStore : public Inner {
 public:
  StagedStore(std::unique_ptr<Inner> inner, const GpuDistOptions& options)
      : keys_(options.gpus),
        inner_(std::move(inner)),
        site_(std::make_unique<GpuDistSite>(*inner_, options, [this] { engine_.wake(); })),
        engine_(*site_, [](GpuItem&) {}) {}
  ~StagedStore() override {
    // The inner store reads and writes the keys' memory until it has stopped.
    engine_.stop();
    inner_->stop();
    if (!engine_.lost()) return;
    // A device still uses this memory, and freeing it would wait for the device forever.
    static_cast<void>(site_.release());
    keys_.abandon();
  }

  KeyId define(const std::string& name, DType dtype, std::size_t count,
               std::size_t rowLength) override {
    return keys_.define(name, dtype, count, rowLength, [&](GpuKey& key) {
      // First, since it may fail and a key of the inner store stays.
      site_->makeRoom(key);
      // Under the table's lock: both stores number their keys alike.
      key.id = inner_->define(name, dtype, count, rowLength);
    });
  }
  void submit(std::vector<Operation> operations, bool /*here*/) override {
    engine_.submit(requestsOf(std::move(operations)));
  }
  std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations) override {
    return std::make_unique<GpuPreparedCall>(engine_, requestsOf(std::move(operations)));
  }
  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    setInOrder([this, optimizer = std::move(optimizer)] { inner_->setOptimizer(optimizer); });
  }
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
  void stop() override {
    engine_.stop();
    inner_->stop();
  }

 protected:
  Inner& inner() { return *inner_; }
  const Inner& inner() const { return *inner_; }
  void endWork() { engine_.stop(); }

  /// Runs `begin` with a ticket for the inner store, after everything submitted before is done and
  /// before anything submitted later begins; the inner store keeps that order.
  void inOrder(std::function<void(std::shared_ptr<Ticket>)> begin, std::shared_ptr<Ticket> ticket) {
    // Each store finishes its tickets under its own lock, so they cannot share one: exactly one of
    // two others finishes it.
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

  /// A setting in the same order; what it fails with is the next barrier's error.
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

 private:
  std::vector<GpuRequest> requestsOf(std::vector<Operation> operations) const {
    return keys_.requestsOf(std::move(operations),
                            [this](int gpu) { return site_->places().indexOf(gpu); });
  }

  void meet(std::shared_ptr<Ticket> ticket) {
    if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
    inner_->barrier(std::move(ticket));
  }

  GpuKeys keys_;

  /// Of the engine's thread: what a setting failed with, for the next barrier.
  std::exception_ptr refused_;

  std::unique_ptr<Inner> inner_;
  std::unique_ptr<GpuDistSite> site_;
  GpuEngine engine_;  // last: its thread uses the rest
};

class GpuDistStore final : public StagedStore<DistStore> {
 public:
  using StagedStore::StagedStore;

  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    inner().setUpdater(std::move(updater));
  }
  void reports(std::shared_ptr<std::vector<std::string>> into,
               std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto done) { inner().reports(into, std::move(done)); }, std::move(ticket));
  }
  void command(const std::string& text, std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto done) { inner().command(text, std::move(done)); }, std::move(ticket));
  }
  void drop() override {
    endWork();
    inner().drop();
  }

  int rank() const override { return inner().rank(); }
  std::vector<ShardPlace> placement() const override { return inner().placement(); }
  std::vector<std::uint64_t> bytesSent() const override { return inner().bytesSent(); }
  std::vector<std::uint64_t> bytesReceived() const override { return inner().bytesReceived(); }
  DistTimes times() const override { return inner().times(); }
  int deadNodes() const override { return inner().deadNodes(); }
};

class GpuAllreduceStore final : public StagedStore<AllreduceStore> {
 public:
  using StagedStore::StagedStore;

  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    if (optimizer) checkOptimizer(*optimizer);
    StagedStore::setOptimizer(std::move(optimizer));
  }
  void checkOptimizer(const Optimizer& optimizer) const override {
    inner().checkOptimizer(optimizer);
  }
  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    setInOrder([this, updater = std::move(updater)] { inner().setUpdater(updater); });
  }
  AllreduceTimes times() const override { return inner().times(); }
  std::uint64_t bytesReduced() const override { return inner().bytesReduced(); }
};

}  // namespace

std::unique_ptr<DistStore> makeGpuDistStore(std::unique_ptr<DistStore> inner,
                                            const GpuDistOptions& options) {
  return std::make_unique<GpuDistStore>(std::move(inner), options);
}

std::unique_ptr<AllreduceStore> makeGpuAllreduceStore(std::unique_ptr<AllreduceStore> inner,
                                                      const GpuDistOptions& options) {
  GpuDistOptions unbounded = options;
  unbounded.onHost = false;
  // A push is done when all workers have pushed the key. Were only some under way, two workers that
  // push in different orders would wait for one another.
  unbounded.roundBytes = std::numeric_limits<std::size_t>::max() / 16;
  return std::make_unique<GpuAllreduceStore>(std::move(inner), unbounded);
}

}  // namespace gradlink

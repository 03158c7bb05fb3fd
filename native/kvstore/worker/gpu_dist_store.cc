#include "kvstore/worker/gpu_dist_store.h"

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "kvstore/gpu/engine.h"
#include "kvstore/gpu/keys.h"
#include "kvstore/store_checks.h"
#include "kvstore/worker/gpu_dist_site.h"

namespace gradlink {
namespace {

class GpuDistStore final : public DistStore {
 public:
  GpuDistStore(std::unique_ptr<DistStore> inner, const GpuDistOptions& options)
      : keys_(options.gpus),
        inner_(std::move(inner)),
        site_(std::make_unique<GpuDistSite>(*inner_, options, [this] { engine_.wake(); })),
        engine_(*site_, [](GpuItem&) {}) {}
  ~GpuDistStore() override;

  KeyId define(const std::string& name, DType, std::size_t count, std::size_t rowLength) override;
  void submit(std::vector<Operation> operations, bool here) override;
  void setOptimizer(std::shared_ptr<Optimizer>) override;
  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    inner_->setUpdater(std::move(updater));
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
  void reports(std::shared_ptr<std::vector<std::string>> into,
               std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto inner) { inner_->reports(into, std::move(inner)); }, std::move(ticket));
  }
  void command(const std::string& text, std::shared_ptr<Ticket> ticket) override {
    inOrder([=, this](auto inner) { inner_->command(text, std::move(inner)); }, std::move(ticket));
  }
  void leave(std::shared_ptr<Ticket> ticket) override {
    inOrder([this](auto inner) { inner_->leave(std::move(inner)); }, std::move(ticket));
  }
  void stop() override {
    engine_.stop();
    inner_->stop();
  }
  void drop() override {
    engine_.stop();
    inner_->drop();
  }

  int rank() const override { return inner_->rank(); }
  std::vector<ShardPlace> placement() const override { return inner_->placement(); }
  std::vector<std::uint64_t> bytesSent() const override { return inner_->bytesSent(); }
  std::vector<std::uint64_t> bytesReceived() const override { return inner_->bytesReceived(); }
  DistTimes times() const override { return inner_->times(); }
  int deadNodes() const override { return inner_->deadNodes(); }

 private:
  void inOrder(std::function<void(std::shared_ptr<Ticket>)> begin, std::shared_ptr<Ticket> ticket);
  void meet(std::shared_ptr<Ticket> ticket);

  GpuKeys keys_;

  /// Of the engine's thread: what a setting failed with, for the next barrier.
  std::exception_ptr refused_;

  std::unique_ptr<DistStore> inner_;
  std::unique_ptr<GpuDistSite> site_;
  GpuEngine engine_;  // last: its thread uses the rest
};

GpuDistStore::~GpuDistStore() {
  // The inner store reads and writes the keys' memory until it has stopped.
  stop();
  if (!engine_.lost()) return;
  // A device still uses this memory, and freeing it would wait for the device for ever.
  static_cast<void>(site_.release());
  keys_.abandon();
}

KeyId GpuDistStore::define(const std::string& name, DType dtype, std::size_t count,
                           std::size_t rowLength) {
  return keys_.define(name, dtype, count, rowLength, [&](GpuKey& key) {
    // First, since it may fail and a key of the inner store stays.
    site_->makeRoom(key);
    // Under the table's lock: both stores number their keys alike.
    key.id = inner_->define(name, dtype, count, rowLength);
  });
}

void GpuDistStore::submit(std::vector<Operation> operations, bool /*here*/) {
  engine_.submit(keys_.itemsOf(std::move(operations),
                               [this](int gpu) { return site_->places().indexOf(gpu); }));
}

/// Runs `begin` with a ticket for the inner store, after everything submitted before is done and
/// before anything submitted later begins; the inner store keeps that order.
void GpuDistStore::inOrder(std::function<void(std::shared_ptr<Ticket>)> begin,
                           std::shared_ptr<Ticket> ticket) {
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

void GpuDistStore::setOptimizer(std::shared_ptr<Optimizer> optimizer) {
  engine_.fence(
      [this, optimizer = std::move(optimizer)] {
        try {
          inner_->setOptimizer(optimizer);
        } catch (...) {
          refused_ = std::current_exception();
        }
      },
      std::make_shared<Ticket>([](const std::exception_ptr&) {}));
}

void GpuDistStore::meet(std::shared_ptr<Ticket> ticket) {
  if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
  inner_->barrier(std::move(ticket));
}

}  // namespace

std::unique_ptr<DistStore> makeGpuDistStore(std::unique_ptr<DistStore> inner,
                                            const GpuDistOptions& options) {
  return std::make_unique<GpuDistStore>(std::move(inner), options);
}

}  // namespace gradlink

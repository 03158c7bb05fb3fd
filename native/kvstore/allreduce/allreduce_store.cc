#include "kvstore/allreduce/allreduce_store.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kvstore/allreduce/allreduce_engine.h"
#include "kvstore/allreduce/key_agreement.h"
#include "kvstore/allreduce/shards.h"
#include "kvstore/keyed_store.h"
#include "kvstore/local/local_store.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink {
namespace {

class AllreduceStore final : public KeyedStore<Key> {
 public:
  AllreduceStore(std::unique_ptr<Communicator> comm, const AllreduceStoreOptions& options,
                 std::unique_ptr<SteppingStore> steps)
      : values_(Placement::devices, 1),
        sharded_(options.shardOptimizer),
        shards_(shardsFor(*comm, options, std::move(steps))),
        engine_(std::move(comm), values_, shards_.get(), options) {}
  ~AllreduceStore() override { stop(); }

  void submit(std::vector<Operation> operations, bool here) override {
    forEachChecked(operations, [](const Key& key, const Operation& operation) {
      if (!operation.inRows.empty()) checkRowCount(key);
    });
    engine_.submit(std::move(operations), here);
  }

  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    check({optimizer, nullptr});
    engine_.fence({.body = [this, optimizer = std::move(optimizer)] {
      // If each worker steps a part, the values are assigned.
      values_.setOptimizer(shards_ ? nullptr : optimizer);
      if (shards_) shards_->setOptimizer(optimizer);
      engine_.changeRule(described(optimizer.get()));
    }});
  }

  void setLearningRate(double value, std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body =
                       [this, value] {
                         engine_.waitFor([&](std::shared_ptr<Ticket> done) {
                           stepper().setLearningRate(value, std::move(done));
                         });
                         const auto bits = std::bit_cast<std::uint64_t>(value);
                         engine_.changeRule(std::to_string(bits), true);
                       },
                   .ticket = std::move(ticket)});
  }

  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    engine_.fence({.body = [this, updater = std::move(updater)] {
      values_.setUpdater(updater);
      if (shards_) shards_->setOptimizer(nullptr);
      // Functions cannot be compared.
      engine_.changeRule("a function");
    }});
  }

  void setCompression(const GradientCompression& /*compression*/) override {
    throw storeUnsupported(
        "an allreduce store has no gradient compression: its workers sum what they push; "
        "use 'dist_sync', whose pushes travel compressed");
  }

  void barrier(std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body = settled(), .meets = true, .ticket = std::move(ticket)});
  }

  void saveStates(const std::string& file, bool dumpOptimizer,
                  std::shared_ptr<Ticket> ticket) override {
    std::function<void()> body = settled();
    if (shards_) {
      engine_.fence(
          {.body = std::move(body),
           .meets = true,
           .gathers =
               [this, file, dumpOptimizer](std::span<const std::vector<std::uint8_t>> states) {
                 shards_->writeStates(file, dumpOptimizer, states);
               },
           .ticket = std::move(ticket)});
      return;
    }
    if (engine_.rank() == 0) {
      body = [this, file, dumpOptimizer] {
        engine_.waitFor([&](std::shared_ptr<Ticket> done) {
          values_.saveStates(file, dumpOptimizer, std::move(done));
        });
      };
    }
    // All wait until the file is written.
    engine_.fence({.body = std::move(body), .meets = true, .ticket = std::move(ticket)});
  }

  void loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body =
                       [this, file] {
                         load(file);
                         engine_.changeRule(described(
                             (shards_ ? shards_->optimizer() : values_.optimizer()).get()));
                       },
                   .meets = true,
                   .ticket = std::move(ticket)});
  }

  void leave(std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body = settled(), .leaves = true, .ticket = std::move(ticket)});
  }

  void check(const UpdateRule& rule) const override {
    if (sharded_ && rule.optimizer) AllreduceShards::check(*rule.optimizer);
    if (shards_ && rule.optimizer) shards_->store().check(rule);
  }
  WorkerReport report() const override { return engine_.report(); }

  void stop() override {
    engine_.stop();
    values_.stop();  // it may still read the engine's sums
    if (shards_) shards_->stop();
    engine_.close();
  }

 private:
  std::unique_ptr<Key> makeKey(Key key) override {
    // First: a GPU may lack memory for it, and a key of values_ cannot be removed.
    if (shards_) shards_->define(key.name, key.dtype, key.count);
    values_.define(key.name, key.dtype, key.count, key.rowLength);
    engine_.define(key);
    return std::make_unique<Key>(std::move(key));
  }
  static void checkRowCount(const Key& key) {
    if (key.count / key.rowLength < kWholeArray) return;
    throw storeMisuse("key " + key.name + " has " + std::to_string(key.count / key.rowLength) +
                      " rows: an allreduce store sums rows of keys of at most " +
                      std::to_string(kWholeArray - 1) + ", push the array in full");
  }

  /// Waits for this worker's own store.
  std::function<void()> settled() {
    return [this] {
      engine_.waitFor([&](std::shared_ptr<Ticket> done) { values_.barrier(std::move(done)); });
    };
  }

  /// Null for a single worker on the host: its part would be the whole.
  static std::unique_ptr<AllreduceShards> shardsFor(const Communicator& comm,
                                                    const AllreduceStoreOptions& options,
                                                    std::unique_ptr<SteppingStore> steps) {
    if (!options.shardOptimizer || (comm.size() == 1 && !steps)) return nullptr;
    if (!steps) steps = std::make_unique<LocalStore>(Placement::devices, 1);
    return std::make_unique<AllreduceShards>(comm.heldRanks().front(), comm.size(),
                                             std::move(steps));
  }

  Store& stepper() {
    if (shards_) return shards_->store();
    return values_;
  }

  /// Equal bytes for equal options, schedules and multipliers.
  static std::string described(const Optimizer* optimizer) {
    if (optimizer == nullptr) return "";
    const std::vector<std::uint8_t> all = gradlink::saveStates(*optimizer, {}, true);
    return {all.begin(), all.end()};
  }

  // ---- bodies of fences
  void load(const std::string& file) {
    if (!shards_) {
      return engine_.waitFor(
          [&](std::shared_ptr<Ticket> done) { values_.loadStates(file, std::move(done)); });
    }
    shards_->loadStates(file, [this](const auto& begin) { engine_.waitFor(begin); });
    values_.setOptimizer(nullptr);
  }

  LocalStore values_;
  /// As requested: a single worker refuses the same as several.
  const bool sharded_;
  const std::unique_ptr<AllreduceShards> shards_;
  AllreduceEngine engine_;
};

}  // namespace

std::unique_ptr<Store> makeAllreduceStore(std::unique_ptr<Communicator> comm,
                                          const AllreduceStoreOptions& options,
                                          std::unique_ptr<SteppingStore> steps) {
  return std::make_unique<AllreduceStore>(std::move(comm), options, std::move(steps));
}

}  // namespace gradlink

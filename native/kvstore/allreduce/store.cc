#include "kvstore/allreduce/store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kvstore/allreduce/engine.h"
#include "kvstore/key_table.h"
#include "kvstore/local/store.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

class Allreduce final : public AllreduceStore {
 public:
  Allreduce(std::unique_ptr<Communicator> comm, const AllreduceStoreOptions& options)
      : values_(Placement::devices, 1), engine_(std::move(comm), values_, options) {}
  ~Allreduce() override { stop(); }

  KeyId define(const std::string& name, DType dtype, std::size_t count,
               std::size_t rowLength) override {
    const KeyId key = values_.define(name, dtype, count, rowLength);
    engine_.define(name, dtype, count);
    keys_.add(name, std::make_unique<Key>(Key{name, count, rowLength}));
    return key;
  }

  void submit(std::vector<Operation> operations, bool here) override {
    for (const Operation& operation : operations) {
      const Key& key = keys_.at(operation.key);
      checkOperation(operation, key.name, key.count, key.rowLength);
      if (!operation.inRows.empty()) throw noRows("an allreduce store");
    }
    engine_.submit(std::move(operations), here);
  }

  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override {
    engine_.fence(
        {.body = [this, optimizer = std::move(optimizer)] { values_.setOptimizer(optimizer); }});
  }

  void setLearningRate(double value, std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body =
                       [this, value] {
                         engine_.waitFor([&](std::shared_ptr<Ticket> done) {
                           values_.setLearningRate(value, std::move(done));
                         });
                       },
                   .ticket = std::move(ticket)});
  }

  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override {
    engine_.fence({.body = [this, updater = std::move(updater)] { values_.setUpdater(updater); }});
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
    if (engine_.rank() == 0) {
      body = [this, file, dumpOptimizer] {
        engine_.waitFor([&](std::shared_ptr<Ticket> done) {
          values_.saveStates(file, dumpOptimizer, std::move(done));
        });
      };
    }
    // Nobody goes on before the file is there.
    engine_.fence({.body = std::move(body), .meets = true, .ticket = std::move(ticket)});
  }

  void loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body =
                       [this, file] {
                         engine_.waitFor([&](std::shared_ptr<Ticket> done) {
                           values_.loadStates(file, std::move(done));
                         });
                       },
                   .meets = true,
                   .ticket = std::move(ticket)});
  }

  void leave(std::shared_ptr<Ticket> ticket) override {
    engine_.fence({.body = settled(), .leaves = true, .ticket = std::move(ticket)});
  }

  AllreduceTimes times() const override { return engine_.times(); }
  std::uint64_t bytesReduced() const override { return engine_.bytesReduced(); }

  void stop() override {
    engine_.stop();
    values_.stop();  // what it still reads of the engine's sums
    engine_.close();
  }

 private:
  struct Key {
    std::string name;
    std::size_t count;
    std::size_t rowLength;
  };

  /// Waits for what this worker's store still does.
  std::function<void()> settled() {
    return [this] {
      engine_.waitFor([&](std::shared_ptr<Ticket> done) { values_.barrier(std::move(done)); });
    };
  }

  KeyTable<Key> keys_;  // of the submitter's thread
  LocalStore values_;
  AllreduceEngine engine_;
};

}  // namespace

std::unique_ptr<AllreduceStore> makeAllreduceStore(std::unique_ptr<Communicator> comm,
                                                   const AllreduceStoreOptions& options) {
  return std::make_unique<Allreduce>(std::move(comm), options);
}

}  // namespace gradlink

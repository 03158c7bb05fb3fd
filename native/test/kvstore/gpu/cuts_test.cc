// A store that cuts keys where that moves less: whatever is set when, its values and states are
// those of a store that cuts none.
#include "test/folder.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

std::shared_ptr<Optimizer> decaying(const std::string& name) {
  std::map<std::string, double> numbers = {{"wd", 0.01}};
  if (name == "sgd") numbers["momentum"] = 0.9;
  return optimizerOf(name, std::move(numbers));
}

/// value := value + received, at once.
class Adder final : public ExternalUpdater {
 public:
  void update(const UpdateRequest& request, std::function<void(std::exception_ptr)> done) override {
    const auto* received = static_cast<const float*>(request.received);
    auto* stored = static_cast<float*>(request.stored);
    for (std::size_t i = 0; i < request.count; ++i) stored[i] += received[i];
    done(nullptr);
  }
};

/// Waits for all that `submit` gives a ticket, which are expected before one can be done.
template <class Submit>
void together(const Submit& submit) {
  waitFor([&](const auto& ticket) {
    ticket->expect();
    submit(ticket);
    ticket->finish(nullptr);
  });
}

/// A store, and what is done to it over and over.
class Driven {
 public:
  Driven(const std::vector<int>& gpus, std::optional<bool> shards) : gpus_(gpus) {
    store_ = makeGpuStore({.gpus = gpus,
                           .merge = GpuMerge::nccl,
                           .shardOptimizer = shards,
                           .leastShardBytes = 256,
                           .fuseBelowBytes = 256});
  }
  SteppingStore& store() { return *store_; }
  /// With a call that pushes it, which stays the same.
  void define(const std::string& name, std::size_t count, std::size_t rowLength) {
    std::mt19937 random(static_cast<unsigned>(keys_.size()));
    const KeyId key = defineWith(*store_, name, wholeFloats(random, count), rowLength);
    std::vector<Floats> gradients;
    for (std::size_t i = 0; i < gpus_.size(); ++i) gradients.push_back(wholeFloats(random, count));
    Key& made = keys_.emplace_back(Key{key, count, GpuArrays(gpus_, gradients), nullptr});
    std::vector<Operation> operations;
    operations.push_back(pushOf(key, made.gradients, nullptr));
    made.push = store_->prepare(std::move(operations));
  }
  void push() {
    together([&](const auto& ticket) { pushWithoutWaiting(ticket); });
  }
  void pushWithoutWaiting(const std::shared_ptr<Ticket>& ticket) {
    for (const Key& key : keys_) key.push->submit(0, ticket);
  }
  /// Rows 1 and 4 of the first key, whose rows have eight elements.
  void pushRows() {
    const Floats rows(16, 3);
    runAll(*store_, [&](const auto& ticket) {
      Operation made;
      made.key = keys_.front().id;
      made.in = {rows.data()};
      made.inRows = {{4, 1}};
      made.ticket = ticket;
      return made;
    });
  }
  std::vector<std::vector<Floats>> values() {
    std::vector<std::vector<Floats>> all;
    for (const Key& key : keys_) {
      const GpuArrays outs(gpus_, Floats(key.count));
      pull(*store_, key.id, outs);
      all.push_back(outs.read());
    }
    return all;
  }
  std::vector<std::uint8_t> states() {
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
    waitFor([&](auto ticket) { store_->copyStates(bytes, ticket); });
    return *bytes;
  }
  void save(const std::string& file) {
    waitFor([&](auto ticket) { store_->saveStates(file, true, ticket); });
  }
  void load(const std::string& file) {
    waitFor([&](auto ticket) { store_->loadStates(file, ticket); });
  }

 private:
  struct Key {
    KeyId id;
    std::size_t count;
    GpuArrays gradients;
    std::unique_ptr<PreparedCall> push;
  };
  const std::vector<int> gpus_;
  std::unique_ptr<SteppingStore> store_;
  std::vector<Key> keys_;
};

class GpuCuts : public testing::Test {
 protected:
  void SetUp() override {
    if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
    for (Driven* one : both()) {
      one->define("rows", gpus.size() * 512 + 72, 8);
      one->define("long", gpus.size() * 512, 1);
      one->define("short", 10, 1);
    }
  }
  std::vector<Driven*> both() { return {&cutting, &whole}; }
  void onBoth(const std::function<void(Driven&)>& body) {
    for (Driven* one : both()) body(*one);
  }
  void set(const std::string& optimizer) {
    onBoth([&](Driven& one) { one.store().setOptimizer(decaying(optimizer)); });
  }
  void expectSameAfterPushes(const std::string& what, int pushes = 2) {
    onBoth([&](Driven& one) {
      for (int i = 0; i < pushes; ++i) one.push();
    });
    EXPECT_EQ(cutting.values(), whole.values()) << what;
  }
  void expectSameStates(const std::string& what) {
    EXPECT_EQ(cutting.states(), whole.states()) << what;
  }

  const std::vector<int> gpus = gpusOf(GpuMerge::nccl);
  Driven cutting{gpus, std::nullopt};
  Driven whole{gpus, false};
};

TEST_F(GpuCuts, EveryRuleFindsTheValues) {
  expectSameAfterPushes("no optimizer");
  set("sgd");
  expectSameAfterPushes("the first optimizer");
  expectSameStates("the first optimizer");
  onBoth([](Driven& one) { one.define("later", 3000, 1); });
  expectSameAfterPushes("a key that came later");
  expectSameStates("a key that came later");
  // It needs whole arrays.
  set("lamb");
  expectSameAfterPushes("lamb");
  expectSameStates("lamb");
  set("adam");
  expectSameAfterPushes("adam");
  onBoth([](Driven& one) { one.store().setUpdater(std::make_shared<Adder>()); });
  expectSameAfterPushes("an updater");
  set("dcasgd");
  expectSameAfterPushes("a state that begins with the value");
  expectSameStates("a state that begins with the value");
  onBoth([](Driven& one) { one.store().setOptimizer(nullptr); });
  expectSameAfterPushes("no optimizer any more");
}

TEST_F(GpuCuts, RulesChangeAmidPushes) {
  onBoth([](Driven& one) {
    together([&](const auto& ticket) {
      for (const char* name : {"sgd", "lamb", "adam", "adam", "lars", "sgd"}) {
        one.store().setOptimizer(decaying(name));
        one.pushWithoutWaiting(ticket);
        one.pushWithoutWaiting(ticket);
      }
    });
  });
  expectSameAfterPushes("all of them", 0);
  expectSameStates("all of them");
}

TEST_F(GpuCuts, KeysWhoseRowsArePushedBecomeWholeWithTheirStates) {
  set("sgd");
  expectSameAfterPushes("before");
  onBoth([](Driven& one) { one.pushRows(); });
  expectSameAfterPushes("rows", 0);
  expectSameStates("rows");
  expectSameAfterPushes("whole arrays again");
  set("adam");
  expectSameAfterPushes("another optimizer");
  expectSameStates("another optimizer");
}

TEST_F(GpuCuts, StatesAreReadByEither) {
  const TestFolder folder;
  for (const char* name : {"sgd", "lamb"}) {
    set(name);
    expectSameAfterPushes(name);
    cutting.save(folder.file("cutting"));
    whole.save(folder.file("whole"));
    set("adam");
    expectSameAfterPushes("meanwhile");
    // The file has the optimizer.
    cutting.load(folder.file("whole"));
    whole.load(folder.file("cutting"));
    expectSameStates(name);
    expectSameAfterPushes(name);
    expectSameStates(name);
  }
}

TEST_F(GpuCuts, WhatCompressionKeepsMovesToo) {
  onBoth([](Driven& one) {
    one.store().setCompression(GradientCompression(CompressionType::twoBit, 700));
  });
  expectSameAfterPushes("no optimizer");
  for (const char* name : {"sgd", "lamb", "sgd"}) {
    set(name);
    expectSameAfterPushes(name, 3);
  }
}

}  // namespace
}  // namespace gradlink::test

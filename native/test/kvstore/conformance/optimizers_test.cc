// Optimizers and their states in every store: the bits of one store of the host that gets all
// workers' arrays.
#include "test/folder.h"
#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {
namespace {

using enum OperationKind;
using Halves = std::vector<std::uint16_t>;

STORES(StoreOptimizers, true);
STORES(StoreOptimizersInParts, maker.cuts());
STORES(StoreStates, true);
STORES(StoreStatesInOneFile, maker.way != kServers);

/// Every optimizer, with options that change what its step does.
std::map<std::string, double> numbersOf(const std::string& name) {
  std::map<std::string, double> numbers{{"wd", decayOf(name, 0.01)}};
  if (name == "sgd" || name == "lars" || name == "dcasgd") numbers["momentum"] = 0.9;
  if (name == "sgld") numbers["seed"] = 3;
  return numbers;
}

/// A key in a store and its twin, and pushes to both.
template <class T = float>
class TwinKeys {
 public:
  using Array = std::vector<T>;

  TwinKeys(const AnyStore& store, const Twin& twin, const std::string& name, std::size_t count)
      : store_(store), twin_(twin), count_(count) {
    constexpr DType kType = sizeof(T) == sizeof(double) ? DType::float64 : DType::float32;
    const Floats pushed = pushedBy(99, 0, count);
    Array value(pushed.begin(), pushed.end());
    for (T& one : value) one /= 1024;
    key_ = store.define(name, kType, value);
    there_ = twin->define(name, kType, value);
  }
  /// So many rounds at once: none waits for the one before it.
  void push(int first, int rounds = 1) const {
    std::vector<StepOf<Array>> here;
    std::vector<StepOf<Array>> there;
    for (int round = first; round < first + rounds; ++round) {
      here.push_back({.kind = OperationKind::push,
                      .key = key_,
                      .in = gradientsOf(store_, round),
                      .mixed = round % 2 == 1});
      there.push_back({OperationKind::push, there_, gradientsOf(*twin_, round)});
    }
    store_.run(std::move(here));
    twin_->run(std::move(there));
  }
  void expectSame(const std::string& what) const {
    const Array expected = twin_.pulled<Array>(there_, count_);
    EXPECT_EQ(store_.pulled<Array>(key_, count_), store_.everywhere(expected))
        << what << " " << count_;
  }

 private:
  std::vector<Array> gradientsOf(const AnyStore& one, int round) const {
    std::vector<Array> gradients;
    for (const Floats& own : ownOf(one, round, count_))
      gradients.emplace_back(own.begin(), own.end());
    // The order of devices is the twin's only where there is no order of workers.
    if (!store_.maker.ordered() || store_.several()) return gradients;
    for (Array& gradient : gradients) {
      for (T& x : gradient) x = std::sin(x);
    }
    return gradients;
  }

  const AnyStore& store_;
  const Twin& twin_;
  const std::size_t count_;
  KeyId key_;
  KeyId there_;
};

TEST_P(StoreOptimizers, StepToTheBitsOfTheHost) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const Twin twin(store);
    // First those that servers do not cut: what needs all of a key is refused beside others.
    for (const bool cut : {false, true}) {
      for (const std::string name : optimizerNames()) {
        const auto optimizer = optimizerOf(name, numbersOf(name));
        const bool whole = !cut && !store.maker.sharded;
        if (!store.maker.steps(*optimizer) && !(whole && store.maker.servers > 1)) continue;
        store.store.setOptimizer(optimizer);
        twin->store.setOptimizer(optimizerOf(name, numbersOf(name)));
        // Of two rows, which servers would cut.
        if (optimizer->math().needsWhole() && !store.maker.onGpus && store.maker.servers > 1) {
          refusedBy(ErrorCode::unsupported,
                    [&] { store.store.define(name, DType::float32, 6000, 3000); });
        }
        std::vector<TwinKeys<>> keys;
        // Of several pieces, for what sums up over all of a key and for another.
        const std::size_t most = name == "adam" || name == "lamb" ? 70'001 : 5'001;
        for (const std::size_t count :
             cut ? std::vector<std::size_t>{1023, most} : std::vector<std::size_t>{1, 0, 31, 499}) {
          keys.emplace_back(store, twin, name + std::to_string(count), count);
        }
        std::vector<TwinKeys<double>> wide;
        if (most > 5'001)
          wide.emplace_back(store, twin, name + "wide" + std::to_string(cut), cut ? 9001 : 63);
        for (const TwinKeys<>& key : keys) key.push(0, 2);
        for (const TwinKeys<double>& key : wide) key.push(0, 2);
        for (const TwinKeys<>& key : keys) key.expectSame(name);
        for (const TwinKeys<double>& key : wide) key.expectSame(name + " of float64");
      }
    }
  });
}

/// Those of one store of the host after a step of its key "w".
void saveStatesOf(const char* optimizer, std::size_t count, bool dumpOptimizer,
                  const std::string& file) {
  LocalStore writer(Placement::devices, 1);
  std::vector<Floats> ones{Floats(count, 1)};
  run(writer, push, makeKey(writer, "w", Floats(count)), ones);
  writer.setOptimizer(optimizerOf(optimizer));
  run(writer, push, 0, ones);
  waitFor([&](auto ticket) { writer.saveStates(file, dumpOptimizer, ticket); });
}

TEST_P(StoreOptimizersInParts, ThatNeedTheWholeAreRefused) {
  const TestFolder folder;
  const std::string file = folder.file("states");
  saveStatesOf("lamb", 6000, true, file);
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    // Of two rows, which are cut too.
    const KeyId key = store.define("w", Floats(6000, 1), 3000);
    // All workers are told the same.
    refusedBy(ErrorCode::unsupported,
              [&] { store.wait([&](auto done) { store.store.loadStates(file, done); }); });
    for (const char* name : {"lamb", "lars", "groupadagrad"}) {
      // Stores of GPUs over servers tell it by the next barrier.
      const std::string text = refusedBy(ErrorCode::unsupported, [&] {
        store.store.setOptimizer(optimizerOf(name));
        store.barrier();
      });
      EXPECT_EQ(lacking(text, {name}), "") << text;
    }
    store.barrier();
    std::vector<Floats> both = ownOf(store, 0, 6000);
    store.run({{pushPull, key, {}, &both}});
    EXPECT_EQ(both, sumsOf(store, 0, 6000)) << "none is set";
  });
}

TEST_P(StoreOptimizers, StepHalvesOnTheirMaster) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kCount = 700;
    const Twin twin(store);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      // Of few bits: all devices' sum is exact.
      const auto halvesOf = [&](int from, float scale) {
        Floats values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          values[i] = scale * static_cast<float>((from + static_cast<int>(i)) % 9 - 4);
        }
        Halves halves(kCount);
        narrow(values.data(), halves.data(), kCount, dtype);
        return halves;
      };
      std::vector<Halves> results;
      for (const AnyStore* each : {&store, &*twin}) {
        const KeyId key = each->define(nameOf(dtype), dtype, halvesOf(3, 0.25F));
        each->store.setOptimizer(
            optimizerOf("adam", {{"multiPrecision", 1}, {"learningRate", 1e-4}}));
        for (int round = 0; round < 4; ++round) {
          each->run<Halves>({{push, key, each->own([&](int device) {
                                return halvesOf(5 * device + round, 0x1p-7F);
                              })}});
        }
        const std::vector<Halves> pulled = each->pulled<Halves>(key, kCount);
        for (const Halves& one : pulled) EXPECT_EQ(one, pulled[0]);
        results.push_back(pulled[0]);
      }
      EXPECT_EQ(results[0], results[1]) << nameOf(dtype);
    }
  });
}

// Saved after all that was submitted before, and before all that comes after; nothing is waited
// for.
TEST_P(StoreStates, GoOnFromAFile) {
  const TestFolder folder;
  const std::string file = folder.file("states");
  // More than servers take at once: a fence that came early would overtake some of it.
  constexpr std::size_t kCount = 150'001;
  Floats value;
  std::vector<Floats> last;
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const KeyId key = store.define("w", Floats(kCount, 8));
    store.store.setOptimizer(momentumOf(0.5));
    std::vector<Floats> saved = ownOf(store, 1, kCount);
    std::vector<Floats> after = saved;
    auto before = store.begin({{push, key, ownOf(store, 0, kCount)}, {pushPull, key, {}, &saved}});
    Waiter saving;
    store.store.saveStates(file, true, saving.ticket());
    auto next = store.begin({{push, key, ownOf(store, 2, kCount)}, {pull, key, {}, &after}});
    before.wait();
    saving.wait();
    next.wait();
    if (store.rank != 0) return;
    value = saved[0];
    last = after;
  });
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const KeyId key = store.define("w", value);
    store.wait([&](auto ticket) { store.store.loadStates(file, ticket); });
    store.run({{push, key, ownOf(store, 2, kCount)}});
    EXPECT_EQ(store.pulled(key, kCount), last);
    EXPECT_NE(last, sumsOf(store, 2, kCount)) << "assigned, not stepped";
    // States alone are of the optimizer that came with the file.
    const std::string alone = folder.file("alone");
    store.wait([&](auto ticket) { store.store.saveStates(alone, false, ticket); });
    store.barrier();
    store.wait([&](auto ticket) { store.store.loadStates(alone, ticket); });
  });
}

TEST_P(StoreStates, OfOneStoreOfTheHostAreTakenOn) {
  const TestFolder folder;
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const Twin twin(store);
    for (const std::string name : {"adam", "ftrl", "lamb", "sgld", "groupadagrad"}) {
      if (!store.maker.steps(*optimizerOf(name))) continue;
      store.store.setOptimizer(nullptr);
      twin->store.setOptimizer(nullptr);
      const TwinKeys<> one(store, twin, name, 5000);
      const TwinKeys<> other(store, twin, name + "short", 33);
      const TwinKeys<double> wide(store, twin, name + "wide", 5000);
      // Assigned: where GPUs keep copies of a sum, steps make them stale.
      wide.push(8);
      twin->store.setOptimizer(optimizerOf(name));
      store.store.setOptimizer(optimizerOf(name));
      for (int round = 0; round < 2; ++round) {
        one.push(round);
        wide.push(round);
      }
      // Each worker has a twin of its own, which writes a file of its own.
      const std::string file = folder.file(name);
      if (store.rank == 0)
        twin->wait([&](auto done) { twin->store.saveStates(file, false, done); });
      store.barrier();
      one.push(2);
      other.push(2);
      wide.push(2);
      // Back to what was before: of the other key, which the file lacks, to none.
      store.wait([&](auto done) { store.store.loadStates(file, done); });
      twin->wait([&](auto done) { twin->store.loadStates(file, done); });
      one.push(3);
      other.push(3);
      wide.push(3);
      one.expectSame(name);
      wide.expectSame(name);
      other.expectSame(name);
      store.barrier();
    }
  });
}

TEST_P(StoreStatesInOneFile, AreTheFileOfOneStoreOfTheHost) {
  const TestFolder folder;
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const Twin twin(store);
    const TwinKeys<> one(store, twin, "w", 5003);
    const TwinKeys<> other(store, twin, "v", 33);
    const TwinKeys<> none(store, twin, "empty", 0);
    const auto contents = [](const std::string& file) {
      std::ifstream stream(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    for (const std::string name : {"adam", "sgld"}) {
      store.store.setOptimizer(optimizerOf(name));
      twin->store.setOptimizer(optimizerOf(name));
      for (int round = 0; round < 2; ++round) {
        one.push(round);
        other.push(round);
        none.push(round);
      }
      const std::string here = folder.file(name + "here");
      const std::string there = folder.file(name + "there");
      store.wait([&](auto done) { store.store.saveStates(here, true, done); });
      store.barrier();
      if (store.rank != 0) continue;
      twin->wait([&](auto done) { twin->store.saveStates(there, true, done); });
      EXPECT_FALSE(contents(here).empty());
      EXPECT_TRUE(contents(here) == contents(there)) << name;
    }
  });
}

TEST_P(StoreStates, ThatDoNotFitAreRefusedAndNothingChanges) {
  const TestFolder folder;
  const std::string file = folder.file("states");
  saveStatesOf("adam", 300, false, file);
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const auto refused = [&](std::initializer_list<std::string_view> words) {
      const std::string text = refusedBy(ErrorCode::invalidArgument, [&] {
        store.wait([&](auto done) { store.store.loadStates(file, done); });
      });
      EXPECT_EQ(lacking(text, words), "") << text;
    };
    const KeyId key = store.define("x", Floats(3));
    const auto error = errorOf([&] {
      store.wait([&](auto done) { store.store.saveStates(folder.file("none"), false, done); });
    });
    // Only who writes a file has to learn that it cannot.
    EXPECT_TRUE(error || store.rank != 0);
    if (error) {
      EXPECT_EQ(error->code, ErrorCode::invalidArgument) << error->what();
      EXPECT_EQ(lacking(error->what(), {"an optimizer"}), "") << error->what();
    }
    refused({"states of adam without"});
    store.store.setOptimizer(optimizerOf("sgd", {{"learningRate", 1}}));
    refused({"states of adam", "sgd"});
    store.store.setOptimizer(optimizerOf("adam"));
    refused({"key w"});
    store.define("w", Floats(7));
    refused({"key w was 300 float32"});
    store.store.setOptimizer(nullptr);
    store.run({{push, key, store.everywhere(Floats(3, 5))}});
    EXPECT_EQ(store.pulled(key, 3), store.everywhere(Floats(3, 5 * store.arraysAsFloat())));
  });
}

}  // namespace
}  // namespace gradlink::test

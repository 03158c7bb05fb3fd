// Updates in stores on GPUs: optimizers, compression, updaters that run outside, saved states. The
// store of CPU devices is the measure, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "kvstore/optimizer/math.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

class GpuStoreUpdates : public GpuStores {
 protected:
  bool refuses(Store& store, const std::shared_ptr<Optimizer>& optimizer);
};

INSTANTIATE_TEST_SUITE_P(Kinds, GpuStoreUpdates, testing::ValuesIn(kStoreKinds), nameOfKind);
INSTANTIATE_TEST_SUITE_P(Shards, GpuStoreUpdates, testing::ValuesIn(kShardedKinds), nameOfKind);

constexpr std::size_t kUpdateCount = 5000;
/// One that is packed for NCCL (with another), one that is not.
constexpr std::size_t kCounts[] = {kUpdateCount, 100, 40'000, 1023};

std::shared_ptr<Optimizer> optimizerOf(const std::string& name,
                                       std::map<std::string, double> numbers = {}) {
  OptimizerSpec spec;
  spec.name = name;
  numbers.emplace("wd", decayOf(name, 0.01));
  spec.numbers = std::move(numbers);
  return Optimizer::create(spec);
}

/// The same pushes into a store of CPU devices and one of GPUs.
class Twins {
 public:
  Twins(Store& store, const std::vector<int>& gpus)
      : store_(store), cpu_(Placement::devices, gpus.size()), gpus_(gpus) {}

  void define() {
    std::mt19937 random(3);
    for (const std::size_t count : kCounts) {
      const Floats first = randomFloats(random, count);
      const std::string name = "k" + std::to_string(count);
      keys_.push_back(defineWith(store_, name, first));
      ASSERT_EQ(makeKey(cpu_, name, first), keys_.back());
    }
  }
  Store& cpu() { return cpu_; }

  /// `exact`: any order of summing gives the same.
  void push(std::mt19937& random, bool exact) {
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> operations;
    std::vector<GpuArrays> arrays;
    pulled_.clear();
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      std::vector<Floats> grads;
      for (std::size_t i = 0; i < gpus_.size(); ++i) {
        grads.push_back(exact ? wholeFloats(random, kCounts[k]) : randomFloats(random, kCounts[k]));
      }
      run(cpu_, OperationKind::push, keys_[k], grads);
      arrays.emplace_back(gpus_, grads);
      operations.push_back(pushOf(keys_[k], arrays.back(), ticket));
    }
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      pulled_.emplace_back(gpus_, Floats(kCounts[k], -1));
      operations.push_back(pullOf(keys_[k], pulled_.back(), ticket));
    }
    store_.submit(std::move(operations));
    waiter.wait();
  }

  void expectSame(const std::string& what) {
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      std::vector<Floats> expected(1, Floats(kCounts[k]));
      run(cpu_, OperationKind::pull, keys_[k], expected);
      const std::vector<Floats> riding = pulled_[k].read();
      const GpuArrays later(gpus_, Floats(kCounts[k], -1));
      pull(store_, keys_[k], later);
      const std::vector<Floats> after = later.read();
      for (std::size_t i = 0; i < gpus_.size(); ++i) {
        EXPECT_EQ(riding[i], expected[0]) << what << " riding, key " << k << ", device " << i;
        EXPECT_EQ(after[i], expected[0]) << what << " later, key " << k << ", device " << i;
      }
    }
  }

  const std::vector<KeyId>& keys() const { return keys_; }

 private:
  Store& store_;
  LocalStore cpu_;
  std::vector<int> gpus_;
  std::vector<KeyId> keys_;
  std::vector<GpuArrays> pulled_;
};

void wait(const std::function<void(std::shared_ptr<Ticket>)>& begin) {
  Waiter waiter;
  begin(waiter.ticket());
  waiter.wait();
}

/// Whether keys are cut over GPUs and this optimizer needs more than a part: then it is refused.
bool GpuStoreUpdates::refuses(Store& store, const std::shared_ptr<Optimizer>& optimizer) {
  if (!GetParam().sharded || !optimizer->math().needsWhole()) return false;
  const std::string text =
      cuda::messageOf(ErrorCode::unsupported, [&] { store.setOptimizer(optimizer); });
  EXPECT_EQ(lacking(text, {optimizer->spec().name, "shardOptimizer"}), "") << text;
  return true;
}

TEST_P(GpuStoreUpdates, EveryOptimizerStepsToTheBitsOfTheHost) {
  // Each optimizer is a kernel (device_step_test.cc); kinds differ in what they give to one, and to
  // those that need a norm first.
  const bool all = GetParam().merge == GpuMerge::peer || GetParam().merge == GpuMerge::host;
  for (const char* name : optimizerNames()) {
    if (!all && !std::set<std::string>{"sgd", "adam", "lamb"}.contains(name)) continue;
    const auto store = open();
    if (GetParam().merge != GpuMerge::host && !runsOnGpus(optimizerOf(name)->math().kernel)) {
      const std::string text =
          cuda::messageOf(ErrorCode::unsupported, [&] { store->setOptimizer(optimizerOf(name)); });
      EXPECT_EQ(lacking(text, {name, "no kernels"}), "") << text;
      continue;
    }
    if (refuses(*store, optimizerOf(name))) continue;
    Twins twins(*store, gpus);
    twins.define();
    std::map<std::string, double> numbers;
    if (std::string(name) == "sgd" || std::string(name) == "lars") numbers["momentum"] = 0.9;
    store->setOptimizer(optimizerOf(name, numbers));
    twins.cpu().setOptimizer(optimizerOf(name, numbers));
    std::mt19937 random(11);
    for (int i = 0; i < 2; ++i) twins.push(random, !ordered());
    twins.expectSame(name);
  }
}

TEST_P(GpuStoreUpdates, RatesChangeFromTheNextPushOn) {
  const auto store = open();
  Twins twins(*store, gpus);
  twins.define();
  for (Store* each : {store.get(), &twins.cpu()}) {
    EXPECT_NE(
        cuda::messageOf(ErrorCode::invalidArgument,
                        [&] { wait([&](auto ticket) { each->setLearningRate(0.5, ticket); }); })
            .find("an optimizer"),
        std::string::npos);
    each->setOptimizer(optimizerOf("adam"));
  }
  std::mt19937 random(12);
  twins.push(random, !ordered());
  for (Store* each : {store.get(), &twins.cpu()}) {
    wait([&](auto ticket) { each->setLearningRate(0.5, ticket); });
  }
  twins.push(random, !ordered());
  twins.expectSame("adam");
  // Without one, pushes assign again.
  for (Store* each : {store.get(), &twins.cpu()}) each->setOptimizer(nullptr);
  twins.push(random, true);
  twins.expectSame("none");
}

TEST_P(GpuStoreUpdates, HalfPrecisionStepsOnItsMaster) {
  const auto store = open();
  LocalStore cpu(Placement::devices, gpus.size());
  // 1, -0.5, 0.25, ... as bfloat16.
  std::vector<std::uint16_t> weights(300);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<std::uint16_t>((i % 2) << 15 | (0x3f80 - (i % 3) * 0x80));
  }
  const std::vector<std::uint16_t> gradient(300, 0x3c23);  // about 0.01
  std::vector<std::uint16_t> expected(300);
  std::vector<std::uint16_t> got(300);
  std::vector<GpuBytes> gradients;
  for (const int gpu : gpus) gradients.emplace_back(gpu, gradient.data(), 600);
  GpuBytes out(gpus.back(), weights.data(), 600);
  for (Store* each : {store.get(), static_cast<Store*>(&cpu)}) {
    const bool onGpus = each == store.get();
    const KeyId key = each->define("a", DType::bfloat16, 300, 1);
    each->setOptimizer(optimizerOf("adam", {{"multiPrecision", 1}, {"learningRate", 1e-4}}));
    wait([&](auto ticket) {
      std::vector<Operation> operations(6);
      operations[0].kind = OperationKind::init;
      operations[0].in = {weights.data()};
      operations[0].inGpus = {-1};
      for (int i = 1; i < 5; ++i) {
        operations[i].kind = OperationKind::push;
        for (const GpuBytes& one : gradients) {
          operations[i].in.push_back(onGpus ? one.data() : gradient.data());
        }
      }
      operations[5].kind = OperationKind::pull;
      operations[5].out = {onGpus ? out.data() : expected.data()};
      operations[5].outGpus = {gpus.back()};
      for (Operation& operation : operations) {
        operation.key = key;
        operation.ticket = ticket;
      }
      each->submit(std::move(operations));
    });
  }
  out.read(got.data());
  EXPECT_EQ(got, expected);
}

TEST_P(GpuStoreUpdates, CompressesWithFeedback) {
  for (const char* type : {"2bit", "1bit"}) {
    const auto store = open();
    const auto compression = GradientCompression::create(type, 0.3);
    if (GetParam().merge == GpuMerge::host) {
      cuda::messageOf(ErrorCode::unsupported, [&] { store->setCompression(compression); });
      continue;
    }
    Twins twins(*store, gpus);
    store->setCompression(compression);
    twins.cpu().setCompression(compression);
    twins.define();
    std::mt19937 random(13);
    for (int i = 0; i < 4; ++i) {
      twins.push(random, false);
      twins.expectSame(type);
    }
    // An optimizer gets what the codes mean.
    for (Store* each : {store.get(), &twins.cpu()}) each->setOptimizer(optimizerOf("adam"));
    for (int i = 0; i < 2; ++i) twins.push(random, false);
    twins.expectSame(type);
    cuda::messageOf(ErrorCode::invalidArgument, [&] { store->setCompression(compression); });
  }
}

/// value := 2 * value + received, on another thread.
class Doubler final : public ExternalUpdater {
 public:
  /// Before the store goes: what is called back belongs to it.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void update(const UpdateRequest& request, std::function<void(std::exception_ptr)> done) override {
    threads_.emplace_back([request, done = std::move(done), fail = fail] {
      const auto* received = static_cast<const float*>(request.received);
      auto* stored = static_cast<float*>(request.stored);
      if (fail) {
        return done(std::make_exception_ptr(Error(ErrorCode::invalidArgument, "no").stillUsable()));
      }
      for (std::size_t i = 0; i < request.count; ++i) stored[i] = 2 * stored[i] + received[i];
      done(nullptr);
    });
  }
  bool fail = false;

 private:
  std::vector<std::thread> threads_;
};

TEST_P(GpuStoreUpdates, UpdatersOutsideTheStore) {
  const auto store = open();
  Twins twins(*store, gpus);
  twins.define();
  const auto updater = std::make_shared<Doubler>();
  if (GetParam().sharded) {
    EXPECT_NE(cuda::messageOf(ErrorCode::unsupported, [&] { store->setUpdater(updater); })
                  .find("whole arrays"),
              std::string::npos);
    return;
  }
  const auto twin = std::make_shared<Doubler>();
  store->setUpdater(updater);
  twins.cpu().setUpdater(twin);
  std::mt19937 random(14);
  for (int i = 0; i < 3; ++i) twins.push(random, false);
  twins.expectSame("updater");

  // What fails leaves the value, and the next push goes on.
  updater->fail = twin->fail = true;
  const GpuArrays arrays(gpus, Floats(kUpdateCount, 1));
  cuda::messageOf(ErrorCode::invalidArgument, [&] { push(*store, twins.keys()[0], arrays); });
  updater->fail = twin->fail = false;
  twins.push(random, false);
  twins.expectSame("after a failure");
  updater->join();
  twin->join();
}

TEST_P(GpuStoreUpdates, StatesGoOnFromAFile) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("gradlink-states-" + std::to_string(getpid())))
          .string();
  for (const char* name : {"adam", "lars", "ftrl"}) {
    const auto first = open();
    if (refuses(*first, optimizerOf(name))) continue;
    cuda::messageOf(ErrorCode::invalidArgument,
                    [&] { wait([&](auto ticket) { first->saveStates(file, true, ticket); }); });
    Twins twins(*first, gpus);
    twins.define();
    for (Store* each : {first.get(), &twins.cpu()}) each->setOptimizer(optimizerOf(name));
    std::mt19937 random(15);
    twins.push(random, !ordered());
    twins.push(random, !ordered());
    wait([&](auto ticket) { first->saveStates(file, true, ticket); });
    // A store of CPU devices reads what GPUs wrote, and the other way round.
    wait([&](auto ticket) { twins.cpu().loadStates(file, ticket); });
    twins.push(random, !ordered());
    twins.expectSame(name);
    wait([&](auto ticket) { twins.cpu().saveStates(file, false, ticket); });
    wait([&](auto ticket) { first->loadStates(file, ticket); });
    twins.push(random, !ordered());
    twins.expectSame(name);

    // Refused, and nothing changes.
    const auto other = open();
    defineWith(*other, "k100", Floats(7));
    other->setOptimizer(optimizerOf(name));
    const std::string text = cuda::messageOf(ErrorCode::invalidArgument, [&] {
      wait([&](auto ticket) { other->loadStates(file, ticket); });
    });
    EXPECT_NE(text.find("key"), std::string::npos) << text;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace gradlink::test

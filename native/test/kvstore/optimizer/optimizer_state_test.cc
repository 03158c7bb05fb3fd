// Saving and loading optimizer states: training that goes on from a file gives the bits of training
// that never stopped, and damaged files are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "kvstore/optimizer/state_parts.h"
#include "test/kvstore/support.h"

namespace gradlink {
namespace {

constexpr std::size_t kCount = 1000;

std::vector<float> randomValues(unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(kCount);
  for (float& value : values) {
    value = distribution(engine);
  }
  return values;
}

OptimizerSpec specOf(const char* name) {
  OptimizerSpec spec = test::specOf(name, {{"wd", test::decayOf(name, 0.001)}});
  spec.scheduler = SchedulerSpec{};
  spec.scheduler->kind = SchedulerKind::cosine;
  spec.scheduler->baseLr = 0.1;
  spec.scheduler->maxUpdate = 20;
  spec.scheduler->warmupSteps = 3;
  spec.lrMult = {{"a", 0.5}};
  spec.paramNames = {{"b", "fc_bias"}};
  return spec;
}

void run(Optimizer& optimizer, OptimizerState& state, std::vector<float>& weight, unsigned from,
         unsigned to) {
  for (unsigned step = from; step < to; ++step) {
    const std::vector<float> grad = randomValues(100 + step);
    const void* grads[] = {grad.data()};
    optimizer.update(state, weight.data(), grads);
  }
}

TEST(OptimizerStates, OfPartsAreThatOfTheWhole) {
  const auto optimizer = Optimizer::create(specOf("adam"));
  std::vector<float> weight = randomValues(1);
  const auto whole = optimizer->createState("a", weight.data(), kCount, DType::float32);
  run(*optimizer, *whole, weight, 0, 3);
  whole->lastLearningRate = 0.25;
  OptimizerState joined = cutState(*whole, 0, 300);
  OptimizerState rest = cutState(*whole, 300, kCount - 300);
  EXPECT_EQ(joined.updates, 3);
  EXPECT_EQ(joined.lastLearningRate, 0.25);
  rest.updates = 5;
  appendState(joined, rest);
  EXPECT_EQ(joined.updates, 5);
  ASSERT_EQ(joined.count, kCount);
  for (std::size_t i = 0; i < whole->arrays.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(
        std::span(static_cast<const float*>(joined.arrays[i].data.data()), kCount),
        std::span(static_cast<const float*>(whole->arrays[i].data.data()), kCount)));
  }
}

TEST(OptimizerStates, GoOnBitForBit) {
  for (const char* name : optimizerNames()) {
    const auto unbroken = Optimizer::create(specOf(name));
    unbroken->setRescaleGrad(0.5);
    std::vector<float> a = randomValues(1);
    std::vector<float> b = randomValues(2);
    const auto stateA = unbroken->createState("a", a.data(), kCount, DType::float32);
    const auto stateB = unbroken->createState("b", b.data(), kCount, DType::float32);
    run(*unbroken, *stateA, a, 0, 5);
    run(*unbroken, *stateB, b, 0, 3);
    const OptimizerState* states[] = {stateA.get(), stateB.get()};
    const std::vector<std::uint8_t> file = saveStates(*unbroken, states, true);
    std::vector<float> resumedA = a;
    run(*unbroken, *stateA, a, 5, 9);

    const LoadedStates loaded = loadStates(file);
    EXPECT_EQ(loaded.optimizerName, name);
    EXPECT_EQ(loaded.numUpdate, 5);
    ASSERT_TRUE(loaded.spec.has_value());
    ASSERT_EQ(loaded.states.size(), 2u);
    EXPECT_EQ(loaded.states[0]->updates, 5);
    EXPECT_EQ(loaded.states[1]->updates, 3);
    EXPECT_EQ(loaded.states[1]->key, "b");
    const auto resumed = Optimizer::create(*loaded.spec);
    resumed->setNumUpdate(loaded.numUpdate);
    run(*resumed, *loaded.states[0], resumedA, 5, 9);
    EXPECT_EQ(std::memcmp(a.data(), resumedA.data(), kCount * sizeof(float)), 0) << name;
    // The same state twice gives the same file.
    EXPECT_EQ(saveStates(*unbroken, states, false), saveStates(*unbroken, states, false));
    EXPECT_FALSE(loadStates(saveStates(*unbroken, states, false)).spec.has_value());
  }
}

/// Over everything after the first line.
void seal(std::vector<std::uint8_t>& file) {
  const auto payload = std::find(file.begin(), file.end(), '\n') + 1;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (auto at = payload; at != file.end(); ++at) hash = (hash ^ *at) * 0x100000001b3u;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&hash);
  file.insert(file.end(), bytes, bytes + sizeof hash);
}

TEST(OptimizerStates, AScheduleKeepsWhatItWarmsUpTo) {
  OptimizerSpec spec = specOf("sgd");
  spec.scheduler->warmupFinalLr = 0.3;
  std::vector<std::uint8_t> file = saveStates(*Optimizer::create(spec), {}, true);
  const LoadedStates loaded = loadStates(file);
  ASSERT_TRUE(loaded.spec && loaded.spec->scheduler);
  EXPECT_EQ(loaded.spec->scheduler->warmupFinalLr, 0.3);

  // As before 0.3: without that rate, which was the base rate. Behind the schedule stand the number
  // of states and the hash.
  constexpr std::ptrdiff_t kAfter = 2 * 8;
  constexpr std::ptrdiff_t kSchedule = 13 * 8;
  file.erase(file.end() - kAfter - 8, file.end() - kAfter);
  *(file.end() - kAfter - (kSchedule - 8)) = 1;
  file.resize(file.size() - 8);
  seal(file);
  const LoadedStates older = loadStates(file);
  ASSERT_TRUE(older.spec && older.spec->scheduler);
  EXPECT_EQ(older.spec->scheduler->baseLr, 0.1);
  EXPECT_EQ(older.spec->scheduler->maxUpdate, 20);
  EXPECT_EQ(older.spec->scheduler->warmupFinalLr, 0.1);

  *(file.end() - kAfter - (kSchedule - 8)) = 3;
  file.resize(file.size() - 8);
  seal(file);
  EXPECT_THROW(loadStates(file), Error);
}

TEST(OptimizerStates, ATableKeepsItsRates) {
  OptimizerSpec spec = specOf("sgd");
  spec.scheduler->kind = SchedulerKind::table;
  spec.scheduler->steps = {1, 4};
  spec.scheduler->rates = {0.25, 0.125};
  const LoadedStates loaded = loadStates(saveStates(*Optimizer::create(spec), {}, true));
  ASSERT_TRUE(loaded.spec && loaded.spec->scheduler);
  EXPECT_EQ(loaded.spec->scheduler->steps, spec.scheduler->steps);
  EXPECT_EQ(loaded.spec->scheduler->rates, spec.scheduler->rates);
}

TEST(OptimizerStates, OfOtherOptionsAreRefused) {
  OptimizerSpec plain = test::specOf("sgd");
  OptimizerSpec withMomentum = plain;
  withMomentum.numbers = {{"momentum", 0.9}};
  const auto without = Optimizer::create(plain);
  const auto with = Optimizer::create(withMomentum);
  const auto none = without->createState("a", nullptr, 8, DType::float32);
  const auto one = with->createState("a", nullptr, 8, DType::float32);
  EXPECT_NO_THROW(with->checkState(*one));
  EXPECT_NO_THROW(without->checkState(*none));
  EXPECT_THROW(with->checkState(*none), Error);
  EXPECT_THROW(without->checkState(*one), Error);
  one->count = 9;
  EXPECT_THROW(with->checkState(*one), Error);
}

TEST(OptimizerStates, DamagedFilesAreRefused) {
  const auto optimizer = Optimizer::create(specOf("adam"));
  std::vector<float> weight = randomValues(1);
  const auto state = optimizer->createState("a", weight.data(), 8, DType::float32);
  const OptimizerState* states[] = {state.get()};
  const std::vector<std::uint8_t> file = saveStates(*optimizer, states, true);
  EXPECT_NO_THROW(loadStates(file));
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_THROW(loadStates(std::span(file).first(length)), Error) << length;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::vector<std::uint8_t> altered = file;
    altered[at] ^= 0x10;
    EXPECT_THROW(loadStates(altered), Error) << at;
  }
  std::vector<std::uint8_t> longer = file;
  longer.push_back(0);
  EXPECT_THROW(loadStates(longer), Error);
}

}  // namespace
}  // namespace gradlink

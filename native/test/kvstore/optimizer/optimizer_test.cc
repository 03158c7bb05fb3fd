// Optimizers: any number of threads, any SIMD level, summed or separate gradients give the same
// bits; options, multipliers, counts and half precision. The formulas themselves are held against a
// float64 reference in test/optimizers.
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "core/kernels/reduce_kernels.h"
#include "kvstore/optimizer/lr_scheduler.h"
#include "kvstore/optimizer/simd/kernels.h"
#include "test/kvstore/support.h"
#include "test/thrown.h"

namespace gradlink {
namespace {

constexpr std::size_t kWeights = 5 * kUpdateBlock + 77;

template <class T>
std::vector<T> randomValues(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) {
    value = static_cast<T>(distribution(engine));
  }
  return values;
}

template <class T>
bool sameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

using test::specOf;

std::vector<OptimizerSpec> everyOptimizer() {
  std::vector<OptimizerSpec> specs;
  for (const char* name : optimizerNames()) {
    const double wd = test::decayOf(name, 0.01);
    specs.push_back(specOf(name, {{"wd", wd}, {"rescaleGrad", 0.5}, {"clipGradient", 0.4}}));
  }
  const std::pair<const char*, std::map<std::string, double>> others[] = {
      {"sgd", {{"momentum", 0.9}}},   {"sgd", {{"momentum", 0.9}, {"nesterov", 1}}},
      {"lars", {{"momentum", 0.9}}},  {"signum", {{"momentum", 0}}},
      {"rmsprop", {{"centered", 1}}}, {"adamw", {{"biasCorrection", 0}}}};
  for (const auto& [name, numbers] : others) {
    specs.push_back(specOf(name, numbers));
    specs.back().numbers["wd"] = 0.01;
  }
  return specs;
}

// Three steps, each block by itself and backwards, phase by phase; without threads all at once.
template <class T>
std::vector<T> steps(const OptimizerSpec& spec, DType dtype, int threads) {
  const auto optimizer = Optimizer::create(spec);
  std::vector<T> weight = randomValues<T>(kWeights, 1);
  const auto state = optimizer->createState("k", weight.data(), weight.size(), dtype);
  for (unsigned step = 0; step < 3; ++step) {
    const std::vector<T> grad = randomValues<T>(kWeights, 10 + step);
    const void* grads[] = {grad.data()};
    if (threads == 0) {
      optimizer->update(*state, weight.data(), grads);
      continue;
    }
    UpdateRun run(*optimizer, *state, optimizer->issue(*state), weight.data(), grads);
    for (int phase = 0; phase < run.phases(); ++phase) {
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&run, phase, threads, t] {
          for (std::size_t block = run.blocks(); block-- > 0;) {
            if (static_cast<int>(block % static_cast<std::size_t>(threads)) == t) {
              run.runBlocks(phase, block, block + 1);
            }
          }
        });
      }
      for (std::thread& worker : workers) {
        worker.join();
      }
      run.endPhase(phase);
    }
  }
  return weight;
}

TEST(Optimizer, PartsAndThreadsDoNotChangeTheBits) {
  for (const OptimizerSpec& spec : everyOptimizer()) {
    const std::vector<float> expected = steps<float>(spec, DType::float32, 0);
    EXPECT_NE(expected, randomValues<float>(kWeights, 1)) << spec.name << " did nothing";
    EXPECT_TRUE(sameBits(expected, steps<float>(spec, DType::float32, 1))) << spec.name;
    EXPECT_TRUE(sameBits(expected, steps<float>(spec, DType::float32, 3))) << spec.name;
    EXPECT_TRUE(
        sameBits(steps<double>(spec, DType::float64, 0), steps<double>(spec, DType::float64, 3)))
        << spec.name;
  }
}

TEST(Optimizer, SeveralGradientsAreTheirSum) {
  for (const OptimizerSpec& spec : everyOptimizer()) {
    for (const std::size_t sources : {2u, 19u}) {
      const auto optimizer = Optimizer::create(spec);
      std::vector<float> fused = randomValues<float>(kWeights, 1);
      std::vector<float> separate = fused;
      const auto fusedState = optimizer->createState("a", fused.data(), kWeights, DType::float32);
      const auto separateState =
          optimizer->createState("a", separate.data(), kWeights, DType::float32);
      std::vector<std::vector<float>> grads;
      std::vector<const void*> pointers;
      for (unsigned i = 0; i < sources; ++i) {
        grads.push_back(randomValues<float>(kWeights, 20 + i));
        pointers.push_back(grads.back().data());
      }
      std::vector<float> sum(kWeights);
      void* const out[] = {sum.data()};
      reduceMany(out, pointers, kWeights, DType::float32, ReduceOp::sum);
      const void* merged[] = {sum.data()};
      for (int step = 0; step < 2; ++step) {
        optimizer->update(*fusedState, fused.data(), pointers);
        optimizer->update(*separateState, separate.data(), merged);
      }
      EXPECT_TRUE(sameBits(fused, separate)) << spec.name << " " << sources;
    }
  }
}

/// Two results that bypass the caches, `offset` elements behind a cache line and at one.
template <class T>
void handOutAt(std::size_t offset, DType dtype) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  const auto optimizer = Optimizer::create(specOf("sgd"));
  std::vector<T> weight = randomValues<T>(kWeights, 1);
  const std::vector<T> grad = randomValues<T>(kWeights, 2);
  const void* const grads[] = {grad.data()};
  const auto state = optimizer->createState("k", weight.data(), kWeights, dtype);
  AlignedBuffer memory[] = {AlignedBuffer((kWeights + kLine) * sizeof(T)),
                            AlignedBuffer((kWeights + kLine) * sizeof(T))};
  T* const starts[] = {static_cast<T*>(memory[0].data()), static_cast<T*>(memory[1].data())};
  void* const outputs[] = {starts[0] + offset, starts[1]};
  UpdateRun run(*optimizer, *state, optimizer->issue(*state), weight.data(), grads);
  run.handOut(outputs);
  run.runBlocks(0, 0, run.blocks(), true);
  run.endPhase(0);
  std::vector<T> expected(offset);
  expected.insert(expected.end(), weight.begin(), weight.end());
  expected.resize(kWeights + kLine);
  EXPECT_TRUE(sameBits(expected, {starts[0], starts[0] + kWeights + kLine})) << offset;
  EXPECT_TRUE(sameBits(weight, {starts[1], starts[1] + kWeights})) << offset;
}

TEST(Optimizer, ResultsBypassTheCachesWhereverTheyLie) {
  for (const std::size_t offset : {0u, 1u, 7u}) {
    handOutAt<float>(offset, DType::float32);
    handOutAt<double>(offset, DType::float64);
  }
}

// Every kernel of every level this machine has against the generic one, at lengths around the
// vector widths.
template <class T>
void compareLevels(const char* level, std::size_t count) {
  const KvKernels* kernels = kvKernels(level);
  const KvKernels& generic = *kvKernels("generic");
  StepScalars<T> c;
  c.lr = T(0.05);
  c.wd = T(0.01);
  c.lrWd = T(0.0005);
  c.keep = T(0.9995);
  c.rescale = T(0.7);
  c.clip = T(0.5);
  c.momentum = c.beta1 = c.beta2 = T(0.9);
  c.onePlusMomentum = T(1.9);
  c.oneMinusMomentum = c.oneMinusBeta1 = c.oneMinusBeta2 = T(0.1);
  c.epsilon = T(1e-3);
  c.correction1 = T(0.19);
  c.correction2 = T(0.3);
  c.lambda1 = T(0.3);
  c.ftrlBeta = T(1);
  c.clipWeights = T(0.8);
  for (std::size_t k = 0; k < kStepKernelCount; ++k) {
    std::vector<std::vector<T>> results;
    for (const KvKernels* each : {&generic, kernels}) {
      std::vector<T> weight = randomValues<T>(count, 1);
      const std::vector<T> grad = randomValues<T>(count, 2);
      std::vector<std::vector<T>> state;
      for (unsigned i = 0; i < 3; ++i) {
        state.push_back(randomValues<T>(count, 3 + i));
        for (T& value : state.back()) {
          value = std::abs(value);
        }
      }
      std::vector<T> direction(count);
      const StepArrays<T> arrays{weight.data(),
                                 grad.data(),
                                 {state[0].data(), state[1].data(), state[2].data()},
                                 direction.data()};
      if constexpr (sizeof(T) == 4) {
        each->step32[k](arrays, count, c);
      } else {
        each->step64[k](arrays, count, c);
      }
      std::vector<T> all = weight;
      for (const auto& array : state) {
        all.insert(all.end(), array.begin(), array.end());
      }
      all.insert(all.end(), direction.begin(), direction.end());
      results.push_back(all);
    }
    EXPECT_TRUE(sameBits(results[0], results[1]))
        << "kernel " << k << " at " << level << ", count " << count;
  }
  const std::vector<T> values = randomValues<T>(count, 9);
  if constexpr (sizeof(T) == 4) {
    EXPECT_EQ(generic.sumOfSquares32(values.data(), count),
              kernels->sumOfSquares32(values.data(), count));
  } else {
    EXPECT_EQ(generic.sumOfSquares64(values.data(), count),
              kernels->sumOfSquares64(values.data(), count));
  }
}

TEST(OptimizerKernels, EveryLevelGivesTheGenericBits) {
  for (const char* level : {"avx2", "avx512"}) {
    if (kvKernels(level) == nullptr) continue;
    for (const std::size_t count : {0u, 1u, 7u, 8u, 15u, 16u, 33u, 1000u}) {
      compareLevels<float>(level, count);
      compareLevels<double>(level, count);
    }
  }
}

TEST(Optimizer, MultiPrecisionKeepsWhatHalfPrecisionLoses) {
  const std::uint16_t one = 0x3f80;  // bfloat16
  for (const double master : {0.0, 1.0}) {
    OptimizerSpec spec = specOf("sgd", {{"learningRate", 0.0001}, {"multiPrecision", master}});
    const auto optimizer = Optimizer::create(spec);
    std::vector<std::uint16_t> weight(3 * kUpdateBlock, one);
    const std::vector<std::uint16_t> grad(weight.size(), one);
    const auto state = optimizer->createState("k", weight.data(), weight.size(), DType::bfloat16);
    const void* grads[] = {grad.data()};
    for (int step = 0; step < 100; ++step) {
      optimizer->update(*state, weight.data(), grads);
    }
    // 1 - 0.01 in bfloat16 is 0x3f7d; without the copy every single step rounds back to 1.
    const std::vector<std::uint16_t> expected(weight.size(), master != 0 ? 0x3f7d : one);
    EXPECT_EQ(weight, expected);
  }
}

TEST(Optimizer, LarsLeavesBiasesAloneAndScalesItsMomentum) {
  OptimizerSpec spec = specOf("lars", {{"momentum", 0.9}, {"learningRate", 0.4}});
  const auto optimizer = Optimizer::create(spec);
  const auto weightState = optimizer->createState("conv_weight", nullptr, 0, DType::float32);
  EXPECT_TRUE(optimizer->issue(*weightState).layerwise);
  optimizer->setLearningRate(0.1);
  EXPECT_EQ(optimizer->issue(*weightState).momentumScale, 0.1 / 0.4);
  EXPECT_EQ(optimizer->issue(*weightState).momentumScale, 1);
  for (const char* key : {"conv_bias", "bn_gamma", "bn_beta"}) {
    EXPECT_FALSE(
        optimizer->issue(*optimizer->createState(key, nullptr, 0, DType::float32)).layerwise)
        << key;
  }
  // Under names of parameters a gamma decays, but not with lars.
  for (const auto& [name, wd] : {std::pair("sgd", 0.5), std::pair("lars", 0.0)}) {
    OptimizerSpec named = specOf(name, {{"wd", 0.5}});
    named.paramNames = {{"7", "bn_gamma"}};
    const auto decaying = Optimizer::create(named);
    EXPECT_EQ(decaying->issue(*decaying->createState("7", nullptr, 0, DType::float32)).wd, wd);
  }
}

/// Which of these the line misses that an error makes; "" when it has all.
std::string lacks(const OptimizerSpec& spec, std::initializer_list<std::string_view> tokens) {
  const auto create = [&] { Optimizer::create(spec); };
  return test::lacking(test::messageOf(ErrorCode::invalidArgument, create) + "\n", tokens);
}

TEST(Optimizer, SaysWhatWasExpected) {
  const char* const optimizers =
      " adadelta, adagrad, adam, adamax, adamw, dcasgd, ftml, ftrl, groupadagrad, lamb, lars, "
      "lbsgd, nadam, rmsprop, sgd, sgld, signum, test\n";
  EXPECT_EQ(lacks(specOf("sdg"), {"optimizer 'sdg'", optimizers}), "");
  const char* const options =
      " beginNumUpdate, clipGradient, learningRate, multiPrecision, rescaleGrad, wd\n";
  EXPECT_EQ(lacks(specOf("test", {{"momentum", 0.9}}), {"test:", "'momentum'", options}), "");
  EXPECT_EQ(
      lacks(specOf("adam", {{"beta1", 1}}), {"adam: beta1", "at least 0", "below 1", "got 1"}), "");
  const auto optimizer = Optimizer::create(specOf("sgd"));
  EXPECT_THROW(optimizer->createState("3", nullptr, 4, DType::int32), Error);
  EXPECT_THROW(optimizer->setLearningRate(std::nan("")), Error);
  const auto state = optimizer->createState("3", nullptr, 0, DType::float32);
  EXPECT_THROW(optimizer->update(*state, nullptr, {}), Error);
}

TEST(LrScheduler, RefusesWhatMakesNoSense) {
  const auto rejected = [](auto change) {
    SchedulerSpec spec;
    spec.steps = {1};
    EXPECT_NO_THROW(checkScheduler(spec));
    change(spec);
    EXPECT_THROW(checkScheduler(spec), Error);
  };
  rejected([](SchedulerSpec& s) { s.steps = {0}; });
  rejected([](SchedulerSpec& s) { s.steps = {}; });
  rejected([](SchedulerSpec& s) { s.steps = {1, 2}; });
  rejected([](SchedulerSpec& s) { s.factor = 1.5; });
  rejected([](SchedulerSpec& s) { s.factor = 0; });
  rejected([](SchedulerSpec& s) { s.baseLr = std::nan(""); });
  rejected([](SchedulerSpec& s) { s.warmupFinalLr = std::nan(""); });
  rejected([](SchedulerSpec& s) { s.warmupSteps = -1; });
  rejected([](SchedulerSpec& s) { s.warmupSteps = 1, s.warmupBeginLr = 1; });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::multiFactor, s.steps = {3, 3}; });
  rejected([](SchedulerSpec& s) {
    s.kind = SchedulerKind::table, s.steps = {2, 5}, s.rates = {1};
  });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::poly, s.maxUpdate = 0; });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::poly, s.maxUpdate = 5, s.power = 0; });
  rejected(
      [](SchedulerSpec& s) { s.kind = SchedulerKind::cosine, s.maxUpdate = 5, s.warmupSteps = 5; });
}

}  // namespace
}  // namespace gradlink

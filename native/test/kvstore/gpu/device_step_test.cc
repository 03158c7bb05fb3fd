// A step on a device leaves the host's weights and states, bit for bit: every optimizer, element
// type, number of gradients and alignment.
#include <random>

#include "core/kernels/reduce_kernels.h"
#include "cuda/step.h"
#include "kvstore/optimizer/math.h"
#include "test/device_support.h"
#include "test/kvstore/support.h"
#include "test/thrown.h"

namespace gradlink::cuda {
namespace {

using test::specOf;

using Bytes = std::vector<std::uint8_t>;

constexpr DType kFloats[] = {DType::float16, DType::bfloat16, DType::float32};

/// Every formula and every option that changes one.
std::vector<OptimizerSpec> everyOptimizer() {
  std::vector<OptimizerSpec> specs;
  for (const char* name : optimizerNames()) {
    if (!runsOnGpus(Optimizer::create(specOf(name, {}))->math().kernel)) continue;
    specs.push_back(specOf(name, {{"wd", 0.01}, {"rescaleGrad", 0.5}, {"clipGradient", 0.4}}));
    specs.push_back(specOf(name, {}));
  }
  specs.push_back(specOf("sgd", {{"momentum", 0.9}, {"wd", 0.01}}));
  specs.push_back(specOf("sgd", {{"momentum", 0.9}, {"nesterov", 1}, {"wd", 0.01}}));
  specs.push_back(specOf("lars", {{"momentum", 0.9}, {"wd", 0.01}, {"epsilon", 1e-9}}));
  specs.push_back(specOf("lamb", {{"lowerBound", 5}, {"upperBound", 6}, {"wd", 0.01}}));
  specs.push_back(specOf("lamb", {{"lowerBound", 50}, {"biasCorrection", 0}}));
  specs.push_back(specOf("signum", {{"momentum", 0}, {"wd", 0.01}}));
  specs.push_back(specOf("signum", {{"wdLh", 0.1}, {"wd", 0.01}}));
  specs.push_back(specOf("rmsprop", {{"centered", 1}, {"wd", 0.01}, {"clipWeights", 0.5}}));
  specs.push_back(specOf("adamw", {{"biasCorrection", 0}, {"wd", 0.01}}));
  specs.push_back(specOf("dcasgd", {{"momentum", 0.9}, {"wd", 0.01}}));
  specs.push_back(specOf("lbsgd", {{"momentum", 0.9}, {"batchScale", 2}, {"wd", 0.01}}));
  specs.push_back(specOf("lbsgd", {{"warmupStrategy", 3}, {"batchScale", 2}, {"wd", 0.01}}));
  return specs;
}

std::string describe(const OptimizerSpec& spec, DType dtype) {
  std::string text = spec.name;
  for (const auto& [option, value] : spec.numbers) {
    text += " " + option + "=" + std::to_string(value);
  }
  return text + ", " + nameOf(dtype);
}

/// From -1 to 1, with zeros and values that a half type keeps as subnormals.
Bytes randomFloats(DType dtype, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = distribution(random);
    if (i % 97 == 0) values[i] = 0;
    if (i % 89 == 0) values[i] *= 1e-6f;
  }
  Bytes bytes(count * sizeOf(dtype));
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      narrow(values.data(), bytes.data(), count, dtype);
      break;
    default:
      if (count != 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

/// One key, on the host and on the device.
struct Twin {
  std::size_t count;
  std::size_t gradCount;
  std::size_t offset;
  Bytes weight;
  std::unique_ptr<OptimizerState> state;
  std::unique_ptr<DeviceArray<std::uint8_t>> deviceWeight;
  std::vector<DeviceArray<std::uint8_t>> deviceStates;
  std::vector<DeviceArray<std::uint8_t>> targets;

  Bytes stateBytes(std::size_t i) const {
    const StateArray& array = state->arrays[i];
    const auto* data = static_cast<const std::uint8_t*>(array.data.data());
    return {data, data + array.count * sizeOf(array.dtype)};
  }
};

class Pair {
 public:
  Pair(const OptimizerSpec& spec, DType dtype)
      : dtype_(dtype), math_(spec), optimizer_(Optimizer::create(spec)) {}

  void addKey(std::size_t count, std::size_t gradCount, std::size_t targetCount,
              std::size_t offset) {
    Twin& twin = twins_.emplace_back();
    const auto seed = static_cast<unsigned>(twins_.size());
    twin.count = count;
    twin.gradCount = gradCount;
    twin.offset = offset;
    twin.weight = randomFloats(dtype_, count, seed);
    // lars leaves biases alone.
    const std::string name = std::to_string(seed) + (seed % 4 == 0 ? "_bias" : "_weight");
    twin.state = optimizer_->createState(name, twin.weight.data(), count, dtype_);
    twin.deviceWeight =
        std::make_unique<DeviceArray<std::uint8_t>>(gpu_, twin.weight, offset * sizeOf(dtype_));
    for (std::size_t i = 0; i < twin.state->arrays.size(); ++i) {
      twin.deviceStates.emplace_back(gpu_, twin.stateBytes(i));
    }
    for (std::size_t i = 0; i < targetCount; ++i) {
      twin.targets.emplace_back(gpu_, Bytes(twin.weight.size()), offset * sizeOf(dtype_));
    }
  }

  void stepAll(unsigned round) {
    std::vector<StepTask> tasks;
    std::vector<DeviceArray<std::uint8_t>> deviceGrads;
    for (Twin& twin : twins_) {
      std::vector<Bytes> grads;
      std::vector<const void*> hostGrads;
      StepTask& task = tasks.emplace_back();
      for (std::size_t g = 0; g < twin.gradCount; ++g) {
        grads.push_back(randomFloats(dtype_, twin.count,
                                     static_cast<unsigned>(1000 * round + 10 * tasks.size() + g)));
        deviceGrads.emplace_back(gpu_, grads.back(), twin.offset * sizeOf(dtype_));
        task.grads.push_back(deviceGrads.back().data());
      }
      for (const Bytes& grad : grads) hostGrads.push_back(grad.data());
      const UpdateNumbers numbers = optimizer_->issue(*twin.state);
      fill(task, twin, numbers);
      UpdateRun(*optimizer_, *twin.state, numbers, twin.weight.data(), hostGrads).execute();
    }
    step(gpu_.stream, gpu_.ring, dtype_, math_.kernel, math_.ratio, tasks);
    gpu_.stream.synchronize();
  }

  void expectEqual(const std::string& what) {
    for (std::size_t k = 0; k < twins_.size(); ++k) {
      Twin& twin = twins_[k];
      EXPECT_TRUE(sameBits(twin.deviceWeight->read(), twin.weight)) << what << ", key " << k;
      for (std::size_t i = 0; i < twin.deviceStates.size(); ++i) {
        EXPECT_TRUE(sameBits(twin.deviceStates[i].read(), twin.stateBytes(i)))
            << what << ", key " << k << ", " << twin.state->arrays[i].name;
      }
      for (DeviceArray<std::uint8_t>& target : twin.targets) {
        EXPECT_TRUE(sameBits(target.read(), twin.weight)) << what << ", key " << k << ", target";
      }
    }
  }

 private:
  void fill(StepTask& task, Twin& twin, const UpdateNumbers& numbers) {
    task.weight = twin.deviceWeight->data();
    for (std::size_t i = 0; i < math_.stateNames.size(); ++i) {
      task.states[i] = twin.deviceStates[i].data();
    }
    if (twin.deviceStates.size() > math_.stateNames.size()) {
      task.master = reinterpret_cast<float*>(twin.deviceStates.back().data());
    }
    for (DeviceArray<std::uint8_t>& target : twin.targets) task.targets.push_back(target.data());
    task.count = twin.count;
    task.scalars = math_.scalars(numbers);
    task.trust = {.learningRate = numbers.learningRate,
                  .wd = numbers.wd,
                  .rescaleGrad = numbers.rescaleGrad,
                  .layerwise = numbers.layerwise,
                  .eta = math_.value("eta"),
                  .epsilon = math_.value("epsilon")};
    if (math_.ratio == TrustRatio::lamb) {
      task.trust.lowerBound = math_.value("lowerBound");
      task.trust.upperBound = math_.value("upperBound");
    }
  }

  OneGpu gpu_;
  DType dtype_;
  OptimizerMath math_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Twin> twins_;
};

void expectSteps(const OptimizerSpec& spec, DType dtype) {
  Pair pair(spec, dtype);
  pair.addKey(1, 1, 0, 0);
  pair.addKey(kUpdateBlock, 1, 1, 0);
  pair.addKey(kUpdateBlock + 16, 2, 0, 0);
  pair.addKey(2 * kUpdateBlock + 77, 3, 2, 1);
  pair.addKey(0, 1, 0, 0);
  pair.addKey(15, 17, 0, 0);
  for (unsigned round = 0; round < 2; ++round) pair.stepAll(round);
  pair.expectEqual(describe(spec, dtype));
}

TEST(DeviceStep, LeavesTheHostsBits) {
  for (const OptimizerSpec& spec : everyOptimizer()) {
    for (const DType dtype : kFloats) {
      // Without an option it is the same kernel, with other numbers.
      if (spec.numbers.empty() && dtype != DType::float32) continue;
      expectSteps(spec, dtype);
    }
  }
}

TEST(DeviceStep, HalvesWithMastersLeaveTheHostsBits) {
  for (OptimizerSpec spec : everyOptimizer()) {
    if (spec.numbers.empty()) continue;
    spec.numbers["multiPrecision"] = 1;
    for (const DType dtype : {DType::float16, DType::bfloat16}) expectSteps(spec, dtype);
  }
}

/// What lars makes of an array's second weight, on the host: the first is 0.
float secondWeight(double learningRate, const Bytes& weight, const Bytes& grad) {
  Bytes stepped = weight;
  const std::size_t count = weight.size() / sizeof(float);
  const auto optimizer = Optimizer::create(specOf("lars", {{"learningRate", learningRate}}));
  const auto state = optimizer->createState("1_weight", stepped.data(), count, DType::float32);
  const void* const grads[] = {grad.data()};
  optimizer->update(*state, stepped.data(), grads);
  float second;
  std::memcpy(&second, stepped.data() + sizeof second, sizeof second);
  return second;
}

TEST(DeviceStep, NormsAreAddedInTheHostsOrder) {
  // float32 hides the last bits of a norm, but at a rate next to the one where a weight changes.
  for (unsigned array = 1; array <= 6; ++array) {
    const std::size_t count = (10 + 3 * array) * kUpdateBlock + 11 * array;
    const Bytes weight = randomFloats(DType::float32, count, 1);
    const Bytes grad = randomFloats(DType::float32, count, 10);
    double below = 0.5;
    double above = 0.6;
    const float from = secondWeight(below, weight, grad);
    ASSERT_NE(from, secondWeight(above, weight, grad));
    for (double middle; middle = below + (above - below) / 2, below < middle && middle < above;) {
      (secondWeight(middle, weight, grad) == from ? below : above) = middle;
    }
    for (const double rate : {below, above}) {
      Pair pair(specOf("lars", {{"learningRate", rate}}), DType::float32);
      pair.addKey(count, 1, 0, 0);
      pair.stepAll(0);
      pair.expectEqual("lars");
    }
  }
}

TEST(DeviceStep, RefusesWhatIsNoStep) {
  OneGpu gpu;
  DeviceArray<float> weight(gpu, {1});
  StepTask task{.weight = weight.data(), .count = 1};
  const auto lacks = [&](const char* name, DType dtype, StepKernel kernel, TrustRatio ratio) {
    return test::lacking(
        test::messageOf(ErrorCode::invalidArgument,
                        [&] {
                          step(gpu.stream, gpu.ring, dtype, kernel, ratio, {&task, 1});
                        }),
        {name});
  };
  EXPECT_EQ(lacks("one gradient", DType::float32, StepKernel::sgd, TrustRatio::none), "");
  task.grads = {weight.data()};
  EXPECT_EQ(lacks("int32", DType::int32, StepKernel::sgd, TrustRatio::none), "");
  for (const auto& [kernel, ratio] : {std::pair(StepKernel::lambApply, TrustRatio::none),
                                      std::pair(StepKernel::lambMoments, TrustRatio::lamb),
                                      std::pair(StepKernel::sgd, TrustRatio::lamb)}) {
    EXPECT_EQ(lacks("lambApply", DType::float32, kernel, ratio), "");
  }
  EXPECT_EQ(weight.read(), std::vector<float>{1});
}

}  // namespace
}  // namespace gradlink::cuda

// Measurements of GPUs: against the stand-ins, whose rates are known, or the GPUs of this machine.
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "cuda/graph.h"
#include "cuda/memory.h"
#include "measure/gpu/affinity.h"
#include "measure/gpu/copies.h"
#include "measure/gpu/kernel_times.h"
#include "measure/gpu/latency.h"
#include "measure/gpu/peers.h"
#include "test/cuda/support.h"

namespace gradlink::measure {
namespace {

using cuda::Device;
using cuda::messageOf;
using cuda::onFakes;

using GpuHostTimesOnFakes = cuda::FreshFakes;
using GpuPeersOnFakes = cuda::FreshFakes;

cpu_set_t affinityNow() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  return cores;
}

GpuCopiesOptions quick(std::vector<GpuCopy> copies, std::size_t measured = 1) {
  GpuCopiesOptions options{.copies = std::move(copies),
                           .measured = measured,
                           .bytes = 1 << 18,
                           .loops = 3,
                           .samples = 2};
  return options;
}

constexpr GpuCopy toGpu(int gpu, bool kernel = false) {
  return {.from = kHostMemory, .to = gpu, .by = gpu, .kernel = kernel};
}
constexpr GpuCopy toHost(int gpu, bool kernel = false) {
  return {.from = gpu, .to = kHostMemory, .by = gpu, .kernel = kernel};
}

TEST(GpuAffinity, ReadsListsOfCores) {
  const cpu_set_t cores = coresOf("0-2,5,7-8");
  EXPECT_EQ(CPU_COUNT(&cores), 6);
  for (const int core : {0, 1, 2, 5, 7, 8}) EXPECT_TRUE(CPU_ISSET(core, &cores)) << core;
  const cpu_set_t none = coresOf("");
  EXPECT_EQ(CPU_COUNT(&none), 0);
  const cpu_set_t beyond = coresOf("0-99999999");
  EXPECT_EQ(CPU_COUNT(&beyond), CPU_SETSIZE);
}

TEST(GpuAffinity, KeepsTheThreadOnTheNodeAndGivesItBack) {
  const cpu_set_t before = affinityNow();
  {
    const OnNode here(0);
    const cpu_set_t now = affinityNow();
    cpu_set_t both;
    CPU_AND(&both, &now, &before);
    // Never a core that was not allowed before.
    EXPECT_TRUE(CPU_EQUAL(&both, &now));
    EXPECT_GT(CPU_COUNT(&now), 0);
  }
  const cpu_set_t after = affinityNow();
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

TEST(GpuAffinity, DoesNothingWithoutANode) {
  const OnNode none(std::nullopt);
  EXPECT_FALSE(none.moved());
  const OnNode beyond(100000);
  EXPECT_FALSE(beyond.moved());
}

TEST(GpuCopies, TimeWhatIsMeasuredAndNotWhatDisturbs) {
  for (const bool kernel : {false, true}) {
    const GpuCopiesResult one = timeGpuCopies(quick({toGpu(0, kernel), toHost(0, kernel)}));
    EXPECT_EQ(one.seconds.size(), 1u);
    EXPECT_EQ(one.wrong, 0u);
    const GpuCopiesResult both = timeGpuCopies(quick({toGpu(0, kernel), toHost(0, kernel)}, 2));
    ASSERT_EQ(both.seconds.size(), 2u);
    // From the common start until the later of the two has ended.
    for (std::size_t i = 0; i < both.spanSeconds.size(); ++i) {
      EXPECT_GE(both.spanSeconds[i] * 1.001, std::max(both.seconds[0][i], both.seconds[1][i]));
      EXPECT_LE(both.spanSeconds[i], 1.001 * (both.seconds[0][i] + both.seconds[1][i]));
    }
  }
}

TEST(GpuCopies, AreTimedByTheHostTooWhenAsked) {
  GpuCopiesOptions options = quick({toGpu(0), toHost(0)});
  options.bytes = 16;
  options.loops = 20;
  const GpuCopiesResult without = timeGpuCopies(options);
  EXPECT_EQ(without.issueSeconds.size(), 2u);
  EXPECT_TRUE(without.hostSeconds.empty());
  options.hostTimes = true;
  const auto began = std::chrono::steady_clock::now();
  const GpuCopiesResult with = timeGpuCopies(options);
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - began;
  ASSERT_EQ(with.issueSeconds.size(), 2u);
  ASSERT_EQ(with.hostSeconds.size(), 2u);
  EXPECT_EQ(with.wrong, 0u);
  double counted = 0;
  for (int sample = 0; sample < 2; ++sample) {
    EXPECT_GT(with.issueSeconds[sample], 0);
    EXPECT_GT(with.hostSeconds[sample], 0);
    counted += (with.issueSeconds[sample] + with.hostSeconds[sample]) * options.loops;
  }
  // Each is the time of one copy, and they follow one another.
  EXPECT_LE(counted, all.count());
}

/// A simulated second for each copy, which the host does not wait.
TEST_F(GpuHostTimesOnFakes, AreThoseOfTheHostAndNotOfTheDevice) {
  const auto body = [] {
    GpuCopiesOptions options = quick({toGpu(0)});
    options.bytes = 16;
    options.loops = 1000;
    options.hostTimes = true;
    const GpuCopiesResult result = timeGpuCopies(options);
    for (int sample = 0; sample < 2; ++sample) {
      EXPECT_NEAR(result.seconds[0][sample], 1, 1e-3);
      EXPECT_LT(result.issueSeconds[sample], 0.1);
      EXPECT_LT(result.hostSeconds[sample], 0.1);
    }
  };
  cuda::expectFine({{"GRADLINK_FAKE_GPUS", "1"}, {"GRADLINK_FAKE_LINKS", "host-0=16"}}, body);
}

// Half of what fits: the second copy would not begin before the first is done.
TEST_F(GpuHostTimesOnFakes, ShareTheirGpuByWhatItsMultiprocessorsHold) {
  const auto body = [] {
    GpuCopiesOptions options = quick({toGpu(0, true), toHost(0, true)});
    options.bytes = 1 << 24;
    options.verify = false;
    timeGpuCopies(options);
    const char* named = std::getenv("GRADLINK_CUDA_LIBRARY");
    void* driver = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_LAZY);
    const auto blocks = reinterpret_cast<int (*)()>(dlsym(driver, "gradlinkFakeBlocks"));
    const int fit = Device::get(0).multiprocessors() * (1024 / 256);
    EXPECT_EQ(blocks(), fit / 2);
  };
  cuda::expectFine({{"GRADLINK_FAKE_FAULTS", "multiprocessor-threads=1024"}}, body);
}

TEST(GpuCopies, StageWithoutPeerAccessAndGiveItBack) {
  if (Device::count() < 2) GTEST_SKIP() << "needs two GPUs";
  Device& one = Device::get(0);
  Device& other = Device::get(1);
  const bool could = one.enablePeer(other);
  GpuCopiesOptions options = quick({{.from = 0, .to = 1, .by = 0}});
  options.peerAccess = false;
  const GpuCopiesResult staged = timeGpuCopies(options);
  EXPECT_EQ(staged.wrong, 0u);
  EXPECT_FALSE(staged.direct[0]);
  {
    const cuda::PeersInUse store;
    messageOf(ErrorCode::unsupported, [&] { timeGpuCopies(options); });
  }
  // A kernel reaches the peer again, where it could before.
  if (could) {
    EXPECT_EQ(timeGpuCopies(quick({{.from = 0, .to = 1, .by = 0, .kernel = true}})).wrong, 0u);
    options.copies[0].kernel = true;
    messageOf(ErrorCode::unsupported, [&] { timeGpuCopies(options); });
  }
}

TEST_F(GpuPeersOnFakes, MakeRoomForOneAnother) {
  const auto body = [] {
    // Each GPU has room for one peer; what a store was granted is not taken.
    for (const int to : {1, 2, 3}) {
      EXPECT_EQ(timeGpuCopies(quick({{.from = 0, .to = to, .by = 0, .kernel = true}})).wrong, 0u);
    }
    EXPECT_TRUE(Device::get(0).reachesAlready(Device::get(3)));
    EXPECT_FALSE(Device::get(0).reachesAlready(Device::get(1)));
    const cuda::PeersInUse store;
    messageOf(ErrorCode::unsupported,
              [] { timeGpuCopies(quick({{.from = 0, .to = 1, .by = 0, .kernel = true}})); });
  };
  cuda::expectFine({{"GRADLINK_FAKE_FAULTS", "peer-limit=1"}}, body);
}

TEST_F(GpuPeersOnFakes, TakeNothingBackInVainAndHoldNothingAfterAFailure) {
  const auto body = [] {
    const auto by = [](std::vector<int> targets) {
      std::vector<GpuCopy> copies;
      for (const int to : targets) copies.push_back({.from = 0, .to = to, .by = 0, .kernel = true});
      return timeGpuCopies(quick(copies)).wrong;
    };
    EXPECT_EQ(by({1}), 0u);
    // Refused for another reason than a lack of room.
    messageOf(ErrorCode::unsupported, [&] { by({2}); });
    EXPECT_TRUE(Device::get(0).reachesAlready(Device::get(1)));
    // This one fails between two grants, and the first makes room afterwards.
    messageOf(ErrorCode::outOfMemory, [&] { by({1, 3}); });
    EXPECT_EQ(by({4}), 0u);
  };
  cuda::expectFine({{"GRADLINK_FAKE_GPUS", "5"},
                    {"GRADLINK_FAKE_FAULTS", "peer-limit=1,peer-refused=0>2,retain=2@3"}},
                   body);
}

TEST(GpuCopies, AskNvmlLittle) {
  const char* const named = std::getenv("GRADLINK_NVML_LIBRARY");
  void* const library = dlopen(named != nullptr ? named : "libnvidia-ml.so.1", RTLD_LAZY);
  void* const counter = library != nullptr ? dlsym(library, "gradlinkFakeNvmlCalls") : nullptr;
  if (counter == nullptr) GTEST_SKIP() << "needs the stand-in, which counts the calls";
  const auto calls = reinterpret_cast<int (*)()>(counter);
  GpuCopiesOptions options = quick({toGpu(0), toHost(0)});
  const auto asked = [&](bool health) {
    options.health = health;
    const int before = calls();
    timeGpuCopies(options);
    return calls() - before;
  };
  // The NUMA node of each host buffer.
  EXPECT_LE(asked(false), 2);
  // And one reading of the GPU, its links' errors included.
  EXPECT_LE(asked(true), 160);
}

TEST(GpuCopies, RefuseWhatMakesNoSense) {
  const auto refused = [](GpuCopiesOptions options) {
    return messageOf(ErrorCode::invalidArgument, [&] { timeGpuCopies(options); });
  };
  EXPECT_NE(refused(quick({})).find("one copy"), std::string::npos);
  EXPECT_NE(refused(quick({toGpu(0)}, 2)).find("measured"), std::string::npos);
  GpuCopiesOptions empty = quick({toGpu(0)});
  empty.bytes = 0;
  EXPECT_NE(refused(empty).find("bytes"), std::string::npos);
  GpuCopiesOptions none = quick({toGpu(0)});
  none.samples = 0;
  EXPECT_NE(refused(none).find("sample"), std::string::npos);
  EXPECT_NE(refused(quick({{.from = kHostMemory, .to = 0, .by = 1}})).find("gpu:1"),
            std::string::npos);
}

TEST(GpuLatency, FollowsTheListToItsEnd) {
  GpuLatencyOptions options{.nodes = 100, .steps = 100'000, .samples = 2};
  for (const int memory : {kHostMemory, 0}) {
    options.memory = memory;
    const GpuLatencyResult result = timeGpuLatency(options);
    EXPECT_EQ(result.wrong, 0u);
    ASSERT_EQ(result.seconds.size(), 2u);
    EXPECT_GT(result.seconds[1], 0);
    const auto& each = result.multiprocessorSeconds;
    ASSERT_EQ(each.size(), static_cast<std::size_t>(cuda::Device::get(0).multiprocessors()));
    EXPECT_GT(*std::min_element(each.begin(), each.end()), 0);
    if (cuda::onFakes()) {
      // They differ there, and their mean does not.
      const double middle = memory == 0 ? 600e-9 : 1500e-9;
      EXPECT_NEAR(*std::min_element(each.begin(), each.end()), 0.95 * middle, 0.1 * middle);
      EXPECT_LT(each[0], each[1]);
      EXPECT_NEAR(result.seconds[0], middle, 0.01 * middle);
    }
  }
  options.stride = 12;
  messageOf(ErrorCode::invalidArgument, [&] { timeGpuLatency(options); });
}

TEST(GpuLoops, CountWhatTheyMove) {
  GpuLoopOptions options{.count = 1 << 16, .loops = 2, .samples = 2};
  const double array = options.count * sizeof(float);
  const auto bytesOf = [&](GpuLoop loop, int arrays) {
    options.loop = loop;
    options.arrays = arrays;
    const GpuLoopResult result = timeGpuLoop(options);
    EXPECT_EQ(result.seconds.size(), 2u);
    EXPECT_GT(result.seconds[0], 0);
    return result.bytes / array;
  };
  EXPECT_DOUBLE_EQ(bytesOf(GpuLoop::copy, 1), 2);
  EXPECT_DOUBLE_EQ(bytesOf(GpuLoop::sum, 2), 3);
  EXPECT_DOUBLE_EQ(bytesOf(GpuLoop::sum, 8), 9);
  EXPECT_DOUBLE_EQ(bytesOf(GpuLoop::sgdMomentum, 1), 5);
  options.count = 0;
  messageOf(ErrorCode::invalidArgument, [&] { timeGpuLoop(options); });
}

TEST(GpuGraphs, RunOnlyWhenLaunched) {
  Device& device = Device::get(0);
  cuda::Stream stream(device);
  const cuda::DeviceMemory memory(device, 64);
  cuda::PinnedMemory host(64);
  auto* const bytes = static_cast<unsigned char*>(host.data());
  std::fill_n(bytes, 64, 7);
  stream.zero(memory.data(), 64);
  stream.synchronize();
  {
    cuda::Graph graph(stream);
    stream.copy(memory.data(), host.data(), 64);
    graph.finish();
    std::fill_n(bytes, 64, 9);
    graph.launch();
    stream.synchronize();
  }
  std::fill_n(bytes, 64, 0);
  stream.copy(host.data(), memory.data(), 64);
  stream.synchronize();
  // What it copied is what was there when it was launched.
  EXPECT_EQ(bytes[0], 9);
  EXPECT_EQ(bytes[63], 9);
  {
    const cuda::Graph abandoned(stream);
    stream.copy(memory.data(), host.data(), 64);
  }
  stream.copy(memory.data(), host.data(), 64);
  stream.synchronize();
}

}  // namespace
}  // namespace gradlink::measure

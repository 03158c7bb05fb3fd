// Memory that is given back, and asked for, beside collectives on several GPUs of one process; and
// the order of launches.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "cuda/kept_memory.h"
#include "test/nccl/support.h"

namespace gradlink::test {
namespace {

/// Ended before the time is up; only a deadlock waits it out.
constexpr double kDeadlockMs = 10000;

/// Two GPUs, whose launches are apart where the libraries do as they are told.
class GpuFrees : public NeedsGpus<2> {
 protected:
  static void inApart(const std::function<std::string()>& body, const char* more = "") {
    const std::string apart = "nccl-launches-apart=100";
    expectFine({{"GRADLINK_FAKE_FAULTS", apart + more}}, body);
  }
  /// What begin(device) gives is called each millisecond while collectives run.
  static void besideCollectives(const std::function<std::function<void()>(cuda::Device&)>& begin) {
    inApart([&]() -> std::string {
      auto comm = nccl::openLocal(firstGpus(2), {.timeoutMs = kDeadlockMs});
      const std::function<void()> free = begin(*comm->devices()[0]);
      std::atomic<bool> over{false};
      std::thread other([&] {
        for (; !over; usleep(1000)) free();
      });
      std::string wrong;
      for (int i = 0; i < 3 && wrong.empty(); ++i) {
        wrong = textOf([&] { return runCase(*comm, {Op::allReduce, 2, 1000}); });
      }
      over = true;
      other.join();
      return wrong;
    });
  }
  /// Frees one of many pieces at a time, which were made ahead.
  template <class Make>
  static std::function<void()> oneByOne(const Make& make) {
    auto given = std::make_shared<std::vector<decltype(make())>>();
    for (int i = 0; i < 1000; ++i) given->push_back(make());
    return [given] {
      if (!given->empty()) given->pop_back();
    };
  }
};

TEST_F(GpuFrees, OfAnyMemoryDoNotStopALaunch) {
  besideCollectives(
      [](auto& device) { return oneByOne([&] { return cuda::DeviceMemory(device, 4000); }); });
  besideCollectives([](auto&) { return oneByOne([] { return cuda::PinnedMemory(4000); }); });
  besideCollectives(
      [](auto& device) { return oneByOne([&] { return nccl::Memory(device, 4000); }); });
  // That make room: each is of another size, so what was kept goes back to the driver.
  besideCollectives([](auto& device) {
    return
        [&device, bytes = std::size_t{0}]() mutable { cuda::DeviceMemory(device, bytes += 4000); };
  });
}

TEST_F(GpuFrees, ComeWhenTheLastCommunicatorCloses) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs a GPU that nobody else uses";
  expectFine([]() -> std::string {
    const std::size_t before = freeBytes(cuda::Device::get(0));
    auto first = nccl::openLocal(firstGpus(2), {});
    auto second = nccl::openLocal(firstGpus(2), {});
    const std::size_t open = freeBytes(cuda::Device::get(0));
    cuda::DeviceMemory(cuda::Device::get(0), 1 << 20);
    first->close();
    if (freeBytes(cuda::Device::get(0)) > open - (1 << 20)) return "freed too early";
    second->close();
    first.reset();
    second.reset();
    return freeBytes(cuda::Device::get(0)) == before ? "" : "not freed";
  });
}

TEST_F(GpuFrees, DoNotComeInACallOfARankWhosePeersAreOfOtherThreads) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs a GPU that nobody else uses";
  expectFine([]() -> std::string {
    cuda::Device& device = cuda::Device::get(0);
    const cuda::KeepMemory keeping;
    cuda::DeviceMemory(device, 2 << 20);
    const std::size_t kept = freeBytes(device);
    {
      const cuda::Launching call(true, Deadline::never(), "call");
      const cuda::DeviceMemory other(device, 1 << 20);
      if (freeBytes(device) != kept - (1 << 20)) return "freed in a call";
    }
    const cuda::DeviceMemory other(device, 1 << 19);
    return freeBytes(device) > kept ? "" : "not freed after it";
  });
}

TEST_F(GpuFrees, AllocationsWaitForOthersLaunches) {
  expectFine([]() -> std::string {
    // A communicator that has all its ranks here, and one that has some of them.
    for (const bool alone : {false, true}) {
      std::atomic<bool> allocated{false};
      bool waited = false;
      std::thread other;
      {
        const auto began = std::chrono::steady_clock::now();
        const cuda::Launching launching(alone, Deadline::never(), "launch");
        std::optional<cuda::NoAllocations> none;
        if (alone) none.emplace();
        const cuda::DeviceMemory own(cuda::Device::get(0), 1000);
        other = std::thread([&] {
          const cuda::DeviceMemory theirs(cuda::Device::get(0), 2000);
          allocated = true;
        });
        for (int i = 0; i < 50 && !allocated; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        // After a second they go on.
        waited = !allocated || std::chrono::steady_clock::now() - began > std::chrono::seconds(1);
      }
      other.join();
      if (!waited) return "allocated in a launch";
    }
    return "";
  });
}

// ---- one order

TEST_F(GpuFrees, TwoCommunicatorsLaunchInOneOrderOnAllGpus) {
  inApart(
      []() -> std::string {
        const nccl::Options options{.timeoutMs = kDeadlockMs};
        // Members in opposite orders.
        const std::array pair{nccl::openLocal(std::array{0, 1}, options),
                              nccl::openLocal(std::array{1, 0}, options)};
        std::array<std::string, 2> wrong;
        std::atomic<int> here{0};
        const auto run = [&](std::size_t i) {
          ++here;
          while (here < 2) std::this_thread::yield();
          for (int round = 0; round < 3 && wrong[i].empty(); ++round) {
            wrong[i] = textOf([&] { return runCase(*pair[i], {Op::allReduce, 2, 1000}); });
          }
        };
        std::thread other(run, 1);
        run(0);
        other.join();
        return wrong[0] + wrong[1];
      },
      ",queues=1");
}

TEST_F(GpuFrees, ALaunchWaitsForOthersNoLongerThanItsDeadline) {
  expectFine([]() -> std::string {
    const auto comm = nccl::openLocal(std::array{0, 1}, {.timeoutMs = kDeadlockMs});
    const cuda::DeviceMemory first(*comm->devices()[0], sizeof(float));
    const cuda::DeviceMemory second(*comm->devices()[1], sizeof(float));
    const std::array<const void*, 2> in{first.data(), second.data()};
    const std::array<void*, 2> out{first.data(), second.data()};
    std::string text;
    {
      // As of another communicator.
      const cuda::KeepMemory open;
      const cuda::Launching launching(false, Deadline::never(), "launch");
      std::thread other([&] {
        text = textOf([&]() -> std::string {
          comm->allReduce({in, out}, 1, DType::float32, ReduceOp::sum, {.timeoutMs = 50});
          return "launched";
        });
      });
      other.join();
    }
    return text.starts_with("threw ERR_TIMEOUT") ? "" : "got: " + text;
  });
}

}  // namespace
}  // namespace gradlink::test

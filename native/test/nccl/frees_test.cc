// Memory that is given back, and asked for, beside collectives on several GPUs of one process.
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "cuda/put_off.h"
#include "test/nccl/support.h"

namespace gradlink::test {
namespace {

/// Ended before the time is up; only a deadlock waits it out.
constexpr double kDeadlockMs = 10000;

/// More than are freed in the time of a test, one a millisecond.
constexpr int kGiven = 1000;

std::size_t freeBytes(cuda::Device& device) {
  device.makeCurrent();
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::Driver::get().memInfo(&free, &total);
  return free;
}

/// Two GPUs, whose launches are apart where the libraries do as they are told.
class GpuFrees : public testing::Test {
 protected:
  void SetUp() override {
    if (gpusHere() < 2) GTEST_SKIP() << "needs 2 GPUs";
  }
  /// What make(device) gives is made ahead, and freed piece by piece while collectives run.
  template <class Make>
  static std::string besideCollectives(const Make& make) {
    return inProcess(
        [&]() -> std::string {
          auto comm = nccl::openLocal(firstGpus(2), {.timeoutMs = kDeadlockMs});
          using Memory = decltype(make(*comm->devices()[0]));
          std::vector<Memory> given;
          given.reserve(kGiven);
          for (int i = 0; i < kGiven; ++i) given.push_back(make(*comm->devices()[0]));
          std::atomic<bool> over{false};
          std::future<void> other = std::async(std::launch::async, [&] {
            while (!over && !given.empty()) {
              given.pop_back();
              usleep(1000);
            }
          });
          std::string wrong;
          for (int i = 0; i < 3 && wrong.empty(); ++i) {
            wrong = Process::textOf([&] { return runCase(*comm, {Op::allReduce, 2, 1000}); });
          }
          over = true;
          other.get();
          return wrong;
        },
        {{"GRADLINK_FAKE_FAULTS", "nccl-launches-apart=100"}});
  }
};

TEST_F(GpuFrees, OfAGpusMemoryDoNotStopALaunch) {
  EXPECT_EQ(
      besideCollectives([](cuda::Device& device) { return cuda::DeviceMemory(device, 4000); }), "");
}

TEST_F(GpuFrees, OfPageLockedMemoryDoNotStopALaunch) {
  EXPECT_EQ(besideCollectives([](cuda::Device&) { return cuda::PinnedMemory(4000); }), "");
}

TEST_F(GpuFrees, OfTheLibrarysMemoryDoNotStopALaunch) {
  EXPECT_EQ(besideCollectives([](cuda::Device& device) { return nccl::Memory(device, 4000); }), "");
}

TEST_F(GpuFrees, ComeWhenTheLastCallHasEnded) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs a GPU that nobody else uses";
  EXPECT_EQ(inProcess([]() -> std::string {
              cuda::Device& device = cuda::Device::get(0);
              const std::size_t before = freeBytes(device);
              {
                const cuda::FreesPutOff first(Deadline::never());
                {
                  const cuda::FreesPutOff second(Deadline::never());
                  cuda::DeviceMemory(device, 1 << 20);
                  cuda::PinnedMemory(1 << 20);
                }
                if (freeBytes(device) != before - (1 << 20)) return "freed too early";
              }
              return freeBytes(device) == before ? "" : "not freed";
            }),
            "");
}

TEST_F(GpuFrees, ComeEarlierWhereThereIsNoRoom) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs GPUs whose memory can be small";
  EXPECT_EQ(inProcess(
                []() -> std::string {
                  const cuda::FreesPutOff own(Deadline::never());
                  cuda::Device& device = cuda::Device::get(0);
                  cuda::DeviceMemory(device, 3 << 20);
                  const cuda::DeviceMemory again(device, 3 << 20);
                  return "";
                },
                {{"GRADLINK_FAKE_FAULTS", "oom=4194304"}}),
            "");
}

/// Gives back as much as makes new calls wait for it; `freed` is set when it is freed.
void giveBackMuch(std::atomic<bool>& freed) {
  cuda::freeOrPutOff(nullptr, &freed, std::size_t{1} << 30,
                     [](void* memory) { *static_cast<std::atomic<bool>*>(memory) = true; });
}

TEST_F(GpuFrees, DoNotStarveWhereCallsOverlapForEver) {
  EXPECT_EQ(inProcess([]() -> std::string {
              std::atomic<bool> freed{false};
              std::promise<void> begun;
              std::string result = "not run";
              std::thread next;
              {
                const cuda::FreesPutOff first(Deadline::never());
                giveBackMuch(freed);
                next = std::thread([&] {
                  begun.set_value();
                  const cuda::FreesPutOff second(Deadline::never());
                  result = freed ? "" : "a call began before what was put off was freed";
                });
                begun.get_future().wait();
                for (int i = 0; i < 10; ++i) std::this_thread::yield();
              }
              next.join();
              return result;
            }),
            "");
}

TEST_F(GpuFrees, DoNotStopCallsThatOthersWaitFor) {
  EXPECT_EQ(inProcess([]() -> std::string {
              std::atomic<bool> freed{false};
              const cuda::FreesPutOff first(Deadline::never());
              giveBackMuch(freed);
              { const cuda::FreesPutOff within(Deadline::never()); }
              // The first call ends when the second has begun.
              std::thread second([] { const cuda::FreesPutOff now(Deadline::never()); });
              second.join();
              return freed ? "freed in a call" : "";
            }),
            "");
}

TEST_F(GpuFrees, WaitNoLongerThanTheDeadlineOfACall) {
  EXPECT_EQ(inProcess([]() -> std::string {
              std::promise<void> begun;
              std::promise<void> go;
              static std::promise<void>* said;
              static std::shared_future<void> gone;
              said = &begun;
              gone = go.get_future().share();
              int anything = 0;
              std::thread other([&] {
                cuda::freeOrPutOff(nullptr, &anything, 1, [](void*) {
                  said->set_value();
                  gone.wait();
                });
              });
              begun.get_future().wait();
              { const cuda::FreesPutOff late(Deadline::in(1)); }
              go.set_value();
              other.join();
              const cuda::FreesPutOff early(Deadline::never());
              return "";
            }),
            "");
}

TEST_F(GpuFrees, AllocationsWaitForOthersLaunches) {
  EXPECT_EQ(inProcess([]() -> std::string {
              std::atomic<bool> launched{false};
              std::atomic<bool> allocated{false};
              std::thread other;
              {
                const cuda::Launching launching(Deadline::never());
                { const cuda::Allocating own; }
                std::promise<void> begun;
                other = std::thread([&] {
                  begun.set_value();
                  const cuda::Allocating now;
                  allocated = true;
                });
                begun.get_future().wait();
                for (int i = 0; i < 100 && !allocated; ++i) std::this_thread::yield();
                launched = !allocated;
              }
              other.join();
              return launched ? "" : "allocated in a launch";
            }),
            "");
}

}  // namespace
}  // namespace gradlink::test

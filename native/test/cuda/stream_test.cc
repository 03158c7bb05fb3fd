#include "cuda/stream.h"

#include <cstring>
#include <stdexcept>

#include "cuda/kernels.h"
#include "cuda/memory.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

/// Bytes that differ by place and seed.
std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<unsigned char>((i * 31 + seed * 17 + i / 251) & 0xff);
  }
  return data;
}

std::vector<unsigned char> read(Stream& stream, const void* memory, std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  stream.copy(data.data(), memory, bytes);
  stream.synchronize();
  return data;
}

TEST(CudaStream, ZeroesExactlyTheBytesItIsGiven) {
  Device& device = Device::get(0);
  Stream stream(device);
  std::vector<unsigned char> data = pattern(1000, 3);
  const DeviceMemory memory(device, data.size());
  stream.copy(memory.data(), data.data(), data.size());
  stream.zero(static_cast<unsigned char*>(memory.data()) + 13, 901);
  stream.zero(memory.data(), 0);
  std::memset(data.data() + 13, 0, 901);
  EXPECT_EQ(read(stream, memory.data(), data.size()), data);
}

TEST(CudaStream, WorkRunsInOrder) {
  Device& device = Device::get(0);
  Stream stream(device);
  const PinnedMemory values(sizeof(std::uint32_t) * 1000);
  auto* const numbers = static_cast<std::uint32_t*>(values.data());
  for (std::uint32_t i = 0; i < 1000; ++i) numbers[i] = i;
  const DeviceMemory memory(device, sizeof(std::uint32_t));
  for (int i = 0; i < 1000; ++i) stream.copy(memory.data(), numbers + i, sizeof(std::uint32_t));
  std::uint32_t last = 0;
  stream.copy(&last, memory.data(), sizeof(last));
  stream.synchronize();
  EXPECT_EQ(last, 999u);
  EXPECT_TRUE(stream.done());
}

TEST(CudaStream, WaitsForEventsOfOtherDevices) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  for (Device* first : allDevices()) {
    for (Device* second : allDevices()) {
      const PinnedMemory from(kBytes);
      const PinnedMemory between(kBytes);
      const PinnedMemory to(kBytes);
      std::memset(from.data(), 1 + first->ordinal(), kBytes);
      const DeviceMemory a(*first, kBytes);
      const DeviceMemory b(*second, kBytes);
      Stream one(*first);
      Stream two(*second);
      Event ready(*first, false);
      one.copy(a.data(), from.data(), kBytes);
      one.copy(between.data(), a.data(), kBytes);
      ready.record(one);
      two.wait(ready);
      two.copy(b.data(), between.data(), kBytes);
      two.copy(to.data(), b.data(), kBytes);
      two.synchronize();
      EXPECT_EQ(std::memcmp(to.data(), from.data(), kBytes), 0);
      EXPECT_TRUE(ready.done());
    }
  }
}

TEST(CudaStream, AnEventThatWasNeverRecordedHoldsNobody) {
  Device& device = Device::get(0);
  Stream stream(device);
  const Event event(device, false);
  EXPECT_TRUE(event.done());
  stream.wait(event);
  stream.synchronize();
  event.synchronize();
}

TEST(CudaStream, TakesTheTimeOfItsWork) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  Device& device = Device::get(0);
  const PinnedMemory host(kBytes);
  const DeviceMemory memory(device, kBytes);
  Stream stream(device);
  Event start(device, true);
  Event middle(device, true);
  Event end(device, true);
  start.record(stream);
  stream.copy(memory.data(), host.data(), kBytes);
  middle.record(stream);
  for (int i = 0; i < 8; ++i) stream.copy(memory.data(), host.data(), kBytes);
  end.record(stream);
  end.synchronize();
  EXPECT_GT(middle.secondsSince(start), 0);
  EXPECT_GT(end.secondsSince(middle), middle.secondsSince(start));
  // Nothing copies a terabyte a second from the host.
  EXPECT_GT(end.secondsSince(start), 9.0 * kBytes / 1e12);
}

TEST(CudaStream, EventsWithoutTimeHaveNone) {
  Device& device = Device::get(0);
  Stream stream(device);
  Event first(device, false);
  Event second(device, false);
  first.record(stream);
  second.record(stream);
  second.synchronize();
  const std::string message =
      messageOf(ErrorCode::system, [&] { static_cast<void>(second.secondsSince(first)); });
  EXPECT_NE(message.find(device.label()), std::string::npos) << message;
}

TEST(CudaStream, ACopyToNowhereNamesTheDevice) {
  Device& device = Device::get(0);
  Stream stream(device);
  unsigned char byte = 1;
  const std::string message = messageOf(ErrorCode::system, [&] { stream.copy(nullptr, &byte, 1); });
  EXPECT_EQ(test::lacking(message, {"a copy", device.label(), "CUDA_ERROR_INVALID_VALUE"}), "")
      << message;
  stream.synchronize();
}

TEST(CudaStream, WhoWaitsLongLeavesTheCoreToOthers) {
  Device& device = Device::get(0);
  Stream stream(device);
  const PinnedMemory flag(sizeof(std::uint32_t));
  *static_cast<std::uint32_t*>(flag.data()) = 0;
  // The kernel gives up by itself, long after polling has.
  spin(stream, static_cast<const std::uint32_t*>(flag.data()), 0.2);
  const auto computed = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto began = std::chrono::steady_clock::now();
  const auto before = computed();
  stream.synchronize();
  EXPECT_TRUE(stream.done());
  EXPECT_LT((computed() - before) * 4, std::chrono::steady_clock::now() - began);
}

using CudaStreamOnFakes = FreshFakes;
using testing::ExitedWithCode;

TEST_F(CudaStreamOnFakes, WorkThatFailedIsReportedToWhoWaitsForIt) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "copy=2"}}, [] {
    Device& device = Device::get(0);
    const PinnedMemory host(4096);
    const DeviceMemory memory(device, 4096);
    Stream stream(device);
    stream.copy(memory.data(), host.data(), 4096);
    stream.synchronize();
    stream.copy(memory.data(), host.data(), 4096);
    const std::string message = messageOf(ErrorCode::system, [&] { stream.synchronize(); });
    EXPECT_EQ(test::lacking(message, {"a stream", device.label(), "CUDA_ERROR_ILLEGAL_ADDRESS"}),
              "")
        << message;
    messageOf(ErrorCode::system, [&] { static_cast<void>(stream.done()); });
  });
}

TEST_F(CudaStreamOnFakes, WorkThatNeverEndsIsATimeout) {
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "stuck-copy=1"}},
                        [] {
                          Device& device = Device::get(0);
                          // Not freed: freeing would wait for the copy.
                          static const PinnedMemory& host = *new PinnedMemory(4096);
                          static const DeviceMemory& memory = *new DeviceMemory(device, 4096);
                          static Stream& stream = *new Stream(device);
                          stream.copy(memory.data(), host.data(), 4096);
                          EXPECT_FALSE(stream.done());
                          await([&] { return stream.done(); }, Deadline::in(5), "the copy");
                        }),
              ExitedWithCode(1), "^ERR_TIMEOUT: the copy ");
}

TEST(CudaAwait, ReturnsWhenItIsDone) {
  int asked = 0;
  await([&] { return ++asked == 3; }, Deadline::never(), "question");
  EXPECT_EQ(asked, 3);
}

TEST(CudaAwait, IsOverAtTheDeadline) {
  const std::string message = messageOf(
      ErrorCode::timeout, [] { await([] { return false; }, Deadline::in(5), "allReduce"); });
  EXPECT_EQ(message.rfind("allReduce ", 0), 0u) << message;
}

TEST(CudaAwait, WhatIsDoneAtTheDeadlineIsInTime) {
  await([] { return true; }, Deadline::in(-1), "over");
  int asked = 0;
  await([&] { return ++asked == 2; }, Deadline::in(-1), "meanwhile");
  EXPECT_EQ(asked, 2);
}

TEST(CudaAwait, TroubleEndsIt) {
  int questions = 0;
  EXPECT_THROW(await([] { return false; }, Deadline::never(), "endless",
                     [&] {
                       if (++questions == 3) throw std::runtime_error("gone");
                     }),
               std::runtime_error);
  EXPECT_EQ(questions, 3);
}

}  // namespace
}  // namespace gradlink::cuda

#include "measure/gpu/buffers.h"

#include <cstring>
#include <optional>

#include "cuda/info.h"
#include "measure/gpu/affinity.h"
#include "measure/wrong_elements.h"

namespace gradlink::measure {
namespace {

/// A remainder of the size is not compared.
constexpr std::size_t kElementBytes = 4;
constexpr std::uint64_t kSeed = 0xbaad;

}  // namespace

GpuBuffer::GpuBuffer(int place, int user, std::size_t bytes, bool affinity)
    : place_(place), user_(user), bytes_(bytes) {
  if (place_ >= 0) {
    memory_ = cuda::DeviceMemory(cuda::Device::get(place_), bytes);
    return;
  }
  const OnNode here(affinity ? cuda::nearestNode(cuda::pciBusIdOf(user_)) : std::nullopt);
  near_ = here.moved();
  cuda::Device::get(user_).makeCurrent();
  pinned_ = cuda::PinnedMemory(bytes, true);
}

cuda::Stream& GpuChecker::streamOf(int gpu) {
  std::unique_ptr<cuda::Stream>& stream = streams_[gpu];
  if (!stream) stream = std::make_unique<cuda::Stream>(cuda::Device::get(gpu));
  return *stream;
}

// The pattern of max spans the whole type; that of a sum has small numbers.
void GpuChecker::fill(const GpuBuffer& buffer, int number, int numbers) {
  cuda::Stream& stream = streamOf(buffer.keeper());
  cuda::fillPattern(stream, buffer.data(), 0, buffer.bytes() / kElementBytes, DType::uint32,
                    ReduceOp::max, numbers, kSeed, number);
  stream.synchronize();
}

void GpuChecker::spoil(const GpuBuffer& buffer) {
  if (buffer.isHost()) {
    std::memset(buffer.data(), 0, buffer.bytes());
    return;
  }
  cuda::Stream& stream = streamOf(buffer.keeper());
  stream.zero(buffer.data(), buffer.bytes());
  stream.synchronize();
}

std::uint64_t GpuChecker::countWrong(const GpuBuffer& buffer, int number, int numbers) {
  return countIn(buffer, number, numbers, 0, buffer.bytes() / kElementBytes);
}

std::optional<WrongElement> GpuChecker::firstWrong(const GpuBuffer& buffer, int number,
                                                   int numbers) {
  const std::size_t at =
      halveToFirst(buffer.bytes() / kElementBytes, [&](std::size_t from, std::size_t count) {
        return countIn(buffer, number, numbers, from, count);
      });
  std::uint64_t got = 0;
  cuda::Stream& stream = streamOf(buffer.keeper());
  stream.copy(&got, static_cast<const char*>(buffer.data()) + at * kElementBytes, kElementBytes);
  stream.synchronize();
  const std::uint64_t expected =
      inputBits(at, {DType::uint32, ReduceOp::max, numbers, kSeed}, number);
  if (got == expected) return std::nullopt;
  return WrongElement{number, at, got, expected};
}

std::uint64_t GpuChecker::countIn(const GpuBuffer& buffer, int number, int numbers,
                                  std::size_t from, std::size_t count) {
  auto* const wrong = static_cast<std::uint64_t*>(wrong_.data());
  *wrong = 0;
  cuda::Stream& stream = streamOf(buffer.keeper());
  cuda::countWrong(stream, static_cast<const char*>(buffer.data()) + from * kElementBytes, from,
                   count, DType::uint32, ReduceOp::max, numbers, kSeed, number, wrong);
  stream.synchronize();
  return *wrong;
}

}  // namespace gradlink::measure

#include "measure/gpu/latency.h"

#include <memory>
#include <string>

#include "core/error.h"
#include "measure/gpu/buffers.h"
#include "measure/gpu/peers.h"

namespace gradlink::measure {
namespace {

void check(const GpuLatencyOptions& options) {
  if (options.nodes < 1 || options.steps < 1 || options.samples < 1 ||
      options.stride < sizeof(void*) || options.stride % sizeof(void*) != 0) {
    throw Error(ErrorCode::invalidArgument,
                "expected at least one node, step and sample, and a stride of whole pointers")
        .withOp("timeGpuLatency")
        .stillUsable();
  }
}

std::vector<PeerAccess::Pair> pairsOf(const GpuLatencyOptions& options) {
  check(options);
  if (options.memory < 0 || options.memory == options.by) return {};
  return {{options.by, options.memory}};
}

}  // namespace

GpuLatencyResult timeGpuLatency(const GpuLatencyOptions& options) {
  const std::vector<PeerAccess::Pair> pairs = pairsOf(options);
  const PeerAccess peers(pairs, true);
  if (!pairs.empty() && !peers.reaches(options.by, options.memory)) {
    throw Error(ErrorCode::unsupported,
                "gpu:" + std::to_string(options.by) +
                    " cannot access the memory of gpu:" + std::to_string(options.memory))
        .withOp("timeGpuLatency")
        .stillUsable();
  }
  cuda::Device& device = cuda::Device::get(options.by);
  cuda::Stream stream(device);
  const std::size_t bytes = options.nodes * options.stride;
  const int multiprocessors = device.multiprocessors();
  const auto count = static_cast<std::size_t>(multiprocessors);
  struct Memory {
    GpuBuffer list;
    cuda::PinnedMemory image;
    cuda::PinnedMemory results;
  };
  std::unique_ptr<const Memory> memory(
      new Memory{{options.memory, options.by, bytes, options.affinity},
                 cuda::PinnedMemory(bytes),
                 cuda::PinnedMemory(count * 2 * sizeof(std::uint64_t))});
  const auto& [list, image, results] = *memory;
  cuda::chaseList(image.data(), list.data(), options.nodes, options.stride);
  stream.copy(list.data(), image.data(), bytes);
  auto* const result = static_cast<std::uint64_t*>(results.data());
  const auto steps = static_cast<std::uint32_t>((options.steps + count - 1) / count);
  const cuda::Address last = cuda::addressOf(list.data()) + steps % options.nodes * options.stride;

  GpuLatencyResult latency;
  latency.near = list.isNear();
  latency.multiprocessorSeconds.resize(count);
  const auto finish = [&] {
    try {
      cuda::await([&] { return stream.done(); }, Deadline::in(options.timeoutMs),
                  "following a list of pointers");
    } catch (const Error&) {
      // Work that never ends still uses it.
      static_cast<void>(memory.release());
      throw;
    }
  };
  // One untimed round fills caches and TLBs.
  cuda::chase(stream, list.data(), static_cast<std::uint32_t>(options.nodes), 0, result);
  finish();
  for (int sample = 0; sample < options.samples; ++sample) {
    for (int each = 0; each < multiprocessors; ++each) {
      cuda::chase(stream, list.data(), steps, each, result + std::ptrdiff_t{2} * each);
    }
    finish();
    bool right = true;
    double sum = 0;
    for (std::size_t each = 0; each < count; ++each) {
      const double seconds = static_cast<double>(result[2 * each]) * 1e-9 / steps;
      sum += seconds;
      latency.multiprocessorSeconds[each] += seconds / options.samples;
      right = right && result[2 * each + 1] == last;
    }
    latency.seconds.push_back(sum / multiprocessors);
    latency.wrong += right ? 0 : 1;
  }
  return latency;
}

}  // namespace gradlink::measure

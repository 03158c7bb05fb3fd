#include "cuda/ranks/window_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "cuda/kernel_module.h"
#include "cuda/kernels.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

namespace gradlink::cuda {
namespace {

constexpr std::size_t kPartAlignment = 256;

std::size_t padded(std::size_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

class GpuWindowMemory final : public WindowMemory {
 public:
  GpuWindowMemory(Device& device, const WindowSpec& spec, int size)
      : WindowMemory(spec, size),
        device_(device),
        own_(spec.array),
        // The buffers, then one for received messages.
        buffers_(device, arrays() * padded(bytes())),
        stream_(device),
        ring_(stream_) {
    Device* const own = &device_;
    loadKernels({&own, 1}, {isFloat(dtype()) ? "weighted" : sumModule(dtype())});
    if (bytes() == 0) return;
    for (std::size_t slot = 0; slot < arrays(); ++slot) {
      if (slot == 0 || !spec.zeroInit) {
        stream_.copy(array(slot), spec.initial, bytes());
      } else {
        stream_.zero(array(slot), bytes());
      }
    }
    stream_.synchronize();
  }

  void* data() const override { return own_.get(); }

  void write(int source, const void* message, double weight, bool accumulate, bool withP,
             double p) override {
    const std::size_t slot = slotOf(source);
    const std::lock_guard lock(mutex_);
    if (bytes() > 0) {
      void* const to = array(slot);
      void* const arrived = accumulate || weight != 1 ? array(arrays()) : to;
      stream_.copy(arrived, message, bytes());
      if (accumulate) {
        combine(to, {to, arrived}, {1, weight});
      } else if (weight != 1) {
        combine(to, {arrived}, {weight});
      }
      stream_.synchronize();
    }
    const std::lock_guard one(head(slot).mutex);
    written(head(slot), weight, accumulate, withP, p);
  }

  double read(void* message) override {
    const std::lock_guard lock(mutex_);
    move(message, own_.get());
    const std::lock_guard one(head(0).mutex);
    return head(0).p;
  }

  void copyOut(void* message, const void* values) override {
    const std::lock_guard lock(mutex_);
    move(message, values);
  }

  void scale(void* values, double weight, bool withP) override {
    const std::lock_guard lock(mutex_);
    if (bytes() > 0) combine(values, {values}, {weight});
    stream_.synchronize();
    const std::lock_guard one(head(0).mutex);
    if (withP) head(0).p *= weight;
  }

  void update(void* out, double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
              bool reset, bool withP) override {
    const std::lock_guard lock(mutex_);
    const bool divides = divisor > 1 && isFloat(dtype());
    const double share = divides ? 1 / static_cast<double>(divisor) : 1;
    Sources from = {own_.get()};
    std::vector<double> weights = {selfWeight * share};
    for (const Neighbor& source : sources) {
      from.push_back(array(slotOf(source.rank)));
      weights.push_back(source.weight * share);
    }
    if (bytes() > 0) {
      void* const to = out == nullptr ? own_.get() : out;
      if (divisor > 1 && !divides) {
        averageOnHost(to, from, divisor);
      } else {
        combine(to, from, weights);
      }
      for (std::size_t i = 0; reset && i < sources.size(); ++i) {
        stream_.zero(const_cast<void*>(from[i + 1]), bytes());
      }
      stream_.synchronize();
    }
    std::vector<std::unique_lock<std::mutex>> held;
    for (std::size_t slot = 0; slot < arrays(); ++slot) held.emplace_back(head(slot).mutex);
    updated(selfWeight, sources, divisor, reset, withP && out == nullptr);
  }

 private:
  /// Slot arrays(): received messages.
  void* array(std::size_t slot) const {
    if (slot == 0) return own_.get();
    return static_cast<char*>(buffers_.data()) + (slot - 1) * padded(bytes());
  }

  void move(void* to, const void* from) {
    if (bytes() == 0) return;
    stream_.copy(to, from, bytes());
    stream_.synchronize();
  }

  void combine(void* to, const Sources& from, const std::vector<double>& weights) {
    if (isFloat(dtype())) {
      return weightedSum(stream_, ring_, dtype(), to, from, weights, count());
    }
    const SumTask task{from, {to}, count()};
    sum(stream_, ring_, dtype(), {&task, 1});
  }

  /// For integers, whose sums could wrap.
  void averageOnHost(void* to, const Sources& from, std::size_t divisor) {
    const std::size_t stride = padded(bytes());
    if (host_.bytes() < from.size() * stride) host_ = PinnedMemory(from.size() * stride);
    Sources here;
    for (const void* const array : from) {
      char* const place = static_cast<char*>(host_.data()) + here.size() * stride;
      move(place, array);
      here.push_back(place);
    }
    void* const mean[] = {host_.data()};
    averageMany(mean, here, count(), dtype(), divisor);
    stream_.copy(to, host_.data(), bytes());
  }

  Device& device_;
  /// Guards the stream and its work.
  std::mutex mutex_;
  const std::shared_ptr<void> own_;
  DeviceMemory buffers_;
  PinnedMemory host_;
  Stream stream_;
  /// Its destructor waits for work on the memory, so it comes last.
  TaskRing ring_;
};

}  // namespace

std::unique_ptr<WindowMemory> makeWindowMemory(Device& device, const WindowSpec& spec, int size) {
  return std::make_unique<GpuWindowMemory>(device, spec, size);
}

namespace {

WireWindows::MakeMemory memoryOn(Device& device, const WindowSpec& spec) {
  if (spec.count > 0 && spec.array == nullptr) {
    throw misuse("createWindow", "expected memory on " + device.label() + " for the array");
  }
  return [&device](const WindowSpec& own, int size) { return makeWindowMemory(device, own, size); };
}

}  // namespace

std::unique_ptr<Window> openWindow(WireWindows& windows, Communicator& communicator, Device& device,
                                   const WindowSpec& spec, const CallOptions& options) {
  return windows.open(communicator, spec, options, memoryOn(device, spec));
}

std::vector<std::unique_ptr<Window>> openWindows(WireWindows& windows, Communicator& communicator,
                                                 const WindowRanks& ranks,
                                                 std::span<Device* const> devices,
                                                 std::span<const WindowSpec> specs,
                                                 const CallOptions& options) {
  std::vector<WireWindows::MakeMemory> make;
  for (std::size_t i = 0; i < specs.size(); ++i) make.push_back(memoryOn(*devices[i], specs[i]));
  return windows.open(communicator, ranks, specs, make, options);
}

}  // namespace gradlink::cuda

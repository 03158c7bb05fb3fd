#include "measure/gpu/kernel_times.h"

#include <limits>
#include <utility>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "cuda/kernels.h"
#include "cuda/step.h"

namespace gradlink::measure {
namespace {

/// The arrays of one loop and the work of one pass.
class KernelArrays {
 public:
  KernelArrays(const GpuLoopOptions& options, cuda::Stream& stream)
      : options_(options), stream_(stream), ring_(stream) {
    cuda::Device* const device = &stream.device();
    if (options.loop == GpuLoop::sum)
      cuda::loadKernels({&device, 1}, {cuda::sumModule(DType::float32)});
    if (options.loop == GpuLoop::sgdMomentum) {
      cuda::loadSteps({&device, 1}, StepKernel::sgdMomentum, TrustRatio::none);
    }
    const int written = options.loop == GpuLoop::sgdMomentum ? 2 : 1;
    for (int i = 0; i < sources() + written; ++i) {
      memory_.emplace_back(stream.device(), options.count * sizeof(float));
      stream.zero(memory_.back().data(), memory_.back().bytes());
    }
  }

  void pass() {
    switch (options_.loop) {
      case GpuLoop::copy:
        stream_.copy(memory_[1].data(), memory_[0].data(), memory_[0].bytes());
        return;
      case GpuLoop::sum: {
        const cuda::SumTask task{given(), {target(0)}, options_.count};
        cuda::sum(stream_, ring_, DType::float32, {&task, 1});
        return;
      }
      case GpuLoop::sgdMomentum: {
        cuda::StepTask task;
        task.grads = given();
        task.weight = target(0);
        task.states[0] = target(1);
        task.count = options_.count;
        task.scalars.lr = 0.1;
        task.scalars.momentum = 0.9;
        task.scalars.clip = std::numeric_limits<double>::infinity();
        cuda::step(stream_, ring_, DType::float32, StepKernel::sgdMomentum, TrustRatio::none,
                   {&task, 1});
        return;
      }
    }
  }

  double bytesOfAPass() const {
    const double array = static_cast<double>(options_.count) * sizeof(float);
    // A step reads and writes the weight and its momentum.
    return array * (options_.loop == GpuLoop::sgdMomentum ? sources() + 4 : sources() + 1);
  }

 private:
  int sources() const { return options_.loop == GpuLoop::copy ? 1 : options_.arrays; }
  void* target(int index) const {
    return memory_[static_cast<std::size_t>(sources()) + static_cast<std::size_t>(index)].data();
  }
  cuda::Sources given() const {
    cuda::Sources pointers;
    pointers.reserve(static_cast<std::size_t>(sources()));
    for (int i = 0; i < sources(); ++i) pointers.push_back(memory_[i].data());
    return pointers;
  }

  const GpuLoopOptions& options_;
  cuda::Stream& stream_;
  std::vector<cuda::DeviceMemory> memory_;
  /// Its destructor waits for work on the memory, so it comes last.
  cuda::TaskRing ring_;
};

}  // namespace

GpuLoopResult timeGpuLoop(const GpuLoopOptions& options) {
  if (options.count == 0 || options.arrays < 1 || options.warmup < 0 || options.loops < 1 ||
      options.samples < 1) {
    throw Error(ErrorCode::invalidArgument,
                "expected at least one element, array, loop and sample, and no negative warmup")
        .withOp("timeGpuLoop")
        .stillUsable();
  }
  cuda::Device& device = cuda::Device::get(options.gpu);
  cuda::Stream stream(device);
  KernelArrays arrays(options, stream);
  cuda::Event start(device, true);
  cuda::Event stop(device, true);
  GpuLoopResult result;
  result.bytes = arrays.bytesOfAPass();
  for (int sample = 0; sample < options.samples; ++sample) {
    // The warm-up passes keep the device busy while the timed ones are queued.
    for (int i = 0; i < options.warmup; ++i) arrays.pass();
    start.record(stream);
    for (int i = 0; i < options.loops; ++i) arrays.pass();
    stop.record(stream);
    cuda::await([&] { return stop.done(); }, Deadline::in(options.timeoutMs), "a kernel");
    result.seconds.push_back(stop.secondsSince(start) / options.loops);
  }
  return result;
}

}  // namespace gradlink::measure

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/reduce_kernels.h"
#include "core/thread_pool.h"
#include "kvstore/base/misuse.h"
#include "kvstore/optimizer/group_adagrad.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/noise.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink {

namespace {

// Blocks that a thread takes at a time: 64 Ki elements hide the cost of claiming them.
constexpr std::size_t kBlocksPerClaim = 16;

const void* advance(const void* memory, std::size_t bytes) {
  return static_cast<const std::byte*>(memory) + bytes;
}

}  // namespace

struct UpdateRun::Impl {
  const OptimizerMath& math;
  OptimizerState& state;
  UpdateNumbers numbers;
  void* weight;
  std::vector<const void*> grads;
  StepScalars<double> scalars;
  float* master = nullptr;
  /// Sums of squares by block, so their total does not depend on the threads.
  std::vector<double> weightSquares;
  std::vector<double> otherSquares;
  /// For row-wise optimizers: the rows, and the sums of squares of each one's part in each block.
  GroupRows rows;
  std::vector<double> rowSquares;
  /// Those that may bypass the caches in a fused step come last.
  std::vector<void*> outputs;
  std::size_t streamed = 0;
  /// Elements of a block before the streamed outputs reach a cache line.
  std::size_t streamHead = 0;

  bool half() const { return state.dtype == DType::float16 || state.dtype == DType::bfloat16; }

  int lastPhase() const { return math.needsWhole() ? 1 : 0; }

  template <class T>
  FusedFunction<T> fusedFunction() const {
    const auto kernel = static_cast<std::size_t>(math.kernel);
    if constexpr (sizeof(T) == sizeof(float)) {
      return kvKernels().fused32[kernel];
    } else {
      return kvKernels().fused64[kernel];
    }
  }

  template <class T>
  StepFunction<T> function(StepKernel kernel) const {
    const KvKernels& kernels = kvKernels();
    if constexpr (sizeof(T) == sizeof(float)) {
      return kernels.step32[static_cast<std::size_t>(kernel)];
    } else {
      return kernels.step64[static_cast<std::size_t>(kernel)];
    }
  }

  template <class T>
  static double squares(const T* x, std::size_t count) {
    if constexpr (sizeof(T) == sizeof(float)) {
      return kvKernels().sumOfSquares32(x, count);
    } else {
      return kvKernels().sumOfSquares64(x, count);
    }
  }

  template <class T>
  StepArrays<T> arraysAt(T* weights, const T* grad, std::size_t start, T* direction) const {
    StepArrays<T> arrays{weights, grad, {nullptr, nullptr, nullptr}, direction};
    for (std::size_t i = 0; i < math.stateNames.size(); ++i) {
      arrays.state[i] = static_cast<T*>(state.arrays[i].data.data()) + start;
    }
    return arrays;
  }

  /// The phase's work on elements in the precision of the step.
  template <class T>
  void step(int phase, std::size_t start, std::size_t count, T* weights, const T* grad) {
    const StepScalars<T> c = rounded<T>(scalars);
    if (math.isByRow()) {
      const T* const history = static_cast<const T*>(state.arrays[0].data.data());
      if (phase == 0) return addRowSquares(rows, grad, start, count, c, rowSquares.data());
      return stepRows(rows, weights, grad, start, count, history, c);
    }
    if (math.kernel == StepKernel::sgld) {
      std::array<T, kUpdateBlock> noise;
      const NoiseOf of{math.value("seed"), state.key, numbers.t};
      fillNormal<T>({noise.data(), count}, of, state.first + start);
      function<T>(math.kernel)({weights, grad, {noise.data(), nullptr, nullptr}, nullptr}, count,
                               c);
      return;
    }
    if (math.ratio == TrustRatio::none || phase == 1) {
      function<T>(math.kernel)(arraysAt<T>(weights, grad, start, nullptr), count, c);
      return;
    }
    const std::size_t block = start / kUpdateBlock;
    weightSquares[block] = squares(weights, count);
    if (math.ratio == TrustRatio::lars) {
      otherSquares[block] = squares(grad, count);
      return;
    }
    if (math.ratio == TrustRatio::lbsgd) {
      std::array<T, kUpdateBlock> mean;
      const T* const gathered = static_cast<const T*>(state.arrays[1].data.data()) + start;
      for (std::size_t i = 0; i < count; ++i) mean[i] = (gathered[i] + grad[i]) / c.correction2;
      otherSquares[block] = squares(mean.data(), count);
      return;
    }
    std::array<T, kUpdateBlock> direction;
    function<T>(StepKernel::lambMoments)(arraysAt<T>(weights, grad, start, direction.data()), count,
                                         c);
    otherSquares[block] = squares(direction.data(), count);
  }

  /// The gradient at `start`: the caller's only array, else the sum, in `scratch`.
  const void* gradientAt(std::size_t start, std::size_t count, void* scratch) const {
    const std::size_t offset = start * sizeOf(state.dtype);
    if (grads.size() == 1) {
      return advance(grads[0], offset);
    }
    std::array<const void*, 16> few;
    std::vector<const void*> many;
    std::span<const void*> sources(few.data(), std::min(grads.size(), few.size()));
    if (grads.size() > few.size()) {
      many.resize(grads.size());
      sources = many;
    }
    for (std::size_t i = 0; i < grads.size(); ++i) {
      sources[i] = advance(grads[i], offset);
    }
    void* const out[] = {scratch};
    reduceMany(out, sources, count, state.dtype, ReduceOp::sum);
    return scratch;
  }

  void run(int phase, std::size_t start, std::size_t end, bool streaming) {
    if (half()) {
      runHalf(phase, start, end, streaming);
    } else if (state.dtype == DType::float32) {
      runFull<float>(phase, start, end, streaming);
    } else {
      runFull<double>(phase, start, end, streaming);
    }
  }

  template <class T>
  void runFull(int phase, std::size_t start, std::size_t end, bool streaming) {
    auto* weights = static_cast<T*>(weight);
    const bool fused = phase == lastPhase() && math.kernel != StepKernel::sgld && !math.isByRow();
    if (fused) return runFused<T>(start, end, streaming);
    std::array<T, kUpdateBlock> sum;
    for (; start < end; start += kUpdateBlock) {
      const std::size_t count = std::min(kUpdateBlock, end - start);
      const void* grad = gradientAt(start, count, sum.data());
      step<T>(phase, start, count, weights + start, static_cast<const T*>(grad));
      if (phase == lastPhase()) copyOut(start, count, streaming);
    }
  }

  template <class T>
  void runFused(std::size_t start, std::size_t end, bool streaming) const {
    const StepScalars<T> c = rounded<T>(scalars);
    // lamb's second phase does not read the gradient.
    const std::size_t read = math.ratio == TrustRatio::lamb ? 0 : grads.size();
    FusedArrays<T> arrays{arraysAt<T>(static_cast<T*>(weight), nullptr, 0, nullptr),
                          grads.data(),
                          read,
                          outputs.data(),
                          outputs.size(),
                          0};
    const FusedFunction<T> run = fusedFunction<T>();
    if (streaming && streamed > 0) {
      const std::size_t head = std::min(streamHead, end - start);
      if (head != 0) run(arrays, start, start + head, c);
      start += head;
      arrays.streamed = streamed;
    }
    run(arrays, start, end, c);
  }

  /// Adds the squares of whole rows, elements [start, end), to the history.
  void keepRowSquares(std::size_t start, std::size_t end) {
    void* const history = state.arrays[0].data.data();
    if (state.arrays[0].dtype == DType::float32) {
      addHistory(rows, rowSquares.data(), start, end, static_cast<float*>(history));
    } else {
      addHistory(rows, rowSquares.data(), start, end, static_cast<double*>(history));
    }
  }

  void copyOut(std::size_t start, std::size_t count, bool streaming) const {
    const std::size_t offset = start * sizeOf(state.dtype);
    const void* const from = advance(weight, offset);
    for (void* const output : outputs) {
      void* const to[] = {static_cast<std::byte*>(output) + offset};
      copyMany(to, from, count * sizeOf(state.dtype), streaming);
    }
  }

  void runHalf(int phase, std::size_t start, std::size_t end, bool streaming) {
    const bool writes = phase == lastPhase();
    std::array<float, kUpdateBlock> wide;
    std::array<float, kUpdateBlock> wideGrad;
    std::array<std::uint16_t, kUpdateBlock> sum;
    for (; start < end; start += kUpdateBlock) {
      const std::size_t count = std::min(kUpdateBlock, end - start);
      auto* narrowWeights = static_cast<std::uint16_t*>(weight) + start;
      widen(gradientAt(start, count, sum.data()), wideGrad.data(), count, state.dtype);
      float* weights = wide.data();
      if (master != nullptr) {
        weights = master + start;
      } else {
        widen(narrowWeights, weights, count, state.dtype);
      }
      step<float>(phase, start, count, weights, wideGrad.data());
      if (writes) {
        narrow(weights, narrowWeights, count, state.dtype);
        copyOut(start, count, streaming);
      }
    }
  }
};

UpdateRun::UpdateRun(const Optimizer& optimizer, OptimizerState& state,
                     const UpdateNumbers& numbers, void* weight, std::span<const void* const> grads)
    : impl_(new Impl{*optimizer.math_,
                     state,
                     numbers,
                     weight,
                     {grads.begin(), grads.end()},
                     {},
                     nullptr,
                     {},
                     {},
                     {state.rowLength},
                     {},
                     {},
                     0,
                     0}) {
  if (grads.empty()) {
    throw storeMisuse("an update needs at least one gradient");
  }
  impl_->scalars = impl_->math.scalars(numbers);
  if (impl_->half() && impl_->math.flag("multiPrecision")) {
    impl_->master = static_cast<float*>(state.arrays.back().data.data());
  }
  if (impl_->math.isByRow()) impl_->rowSquares.resize(impl_->rows.parts(state.count));
  if (impl_->math.ratio != TrustRatio::none) {
    impl_->weightSquares.resize(blocks());
    impl_->otherSquares.resize(blocks());
  }
}

UpdateRun::~UpdateRun() = default;

void UpdateRun::handOut(std::span<void* const> outputs) {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t elementBytes = sizeOf(impl_->state.dtype);
  impl_->outputs.assign(outputs.begin(), outputs.end());
  impl_->streamed = 0;
  impl_->streamHead = 0;
  if (outputs.empty()) return;
  const auto misalignment = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % kCacheLine;
  };
  // All share one head: outputs with another alignment than the first are stored normally.
  const std::size_t first = misalignment(outputs[0]);
  if (first % elementBytes != 0) {
    return;
  }
  const auto alike = std::stable_partition(impl_->outputs.begin(), impl_->outputs.end(),
                                           [&](void* to) { return misalignment(to) != first; });
  impl_->streamed = static_cast<std::size_t>(impl_->outputs.end() - alike);
  impl_->streamHead = (kCacheLine - first) % kCacheLine / elementBytes;
}

void UpdateRun::useGradients(std::span<const void* const> grads) {
  impl_->grads.assign(grads.begin(), grads.end());
}

void UpdateRun::useWeight(void* weight) { impl_->weight = weight; }

int UpdateRun::phases() const { return impl_->lastPhase() + 1; }

std::size_t UpdateRun::blocks() const {
  return (impl_->state.count + kUpdateBlock - 1) / kUpdateBlock;
}

void UpdateRun::runBlocks(int phase, std::size_t first, std::size_t end, bool streaming) {
  const std::size_t from = first * kUpdateBlock;
  const std::size_t to = std::min(end * kUpdateBlock, impl_->state.count);
  if (from < to) impl_->run(phase, from, to, streaming);
}

bool UpdateRun::takesElements() const { return impl_->math.lazy && !impl_->math.isByRow(); }

void UpdateRun::runElements(const void* grad, std::size_t first, std::size_t count) {
  const auto at = reinterpret_cast<std::uintptr_t>(grad);
  // The virtual element 0.
  impl_->grads.assign(1, reinterpret_cast<const void*>(at - first * sizeOf(impl_->state.dtype)));
  if (count > 0) impl_->run(0, first, first + count, false);
}

void UpdateRun::runRows(const SortedRows& grads, std::size_t rowLength) {
  forEachRun(grads.rows, [&](std::size_t first, std::size_t rows, std::size_t at) {
    const void* const grad =
        advance(grads.data.data(), at * rowLength * sizeOf(impl_->state.dtype));
    const std::size_t start = first * rowLength;
    const std::size_t end = start + rows * rowLength;
    runElements(grad, start, end - start);
    if (!impl_->math.isByRow()) return;
    impl_->keepRowSquares(start, end);
    impl_->run(1, start, end, false);
  });
}

void UpdateRun::endPhase(int phase) {
  if (phase + 1 == phases()) {
    return;
  }
  if (impl_->math.isByRow()) return impl_->keepRowSquares(0, impl_->state.count);
  double weightTotal = 0;
  double otherTotal = 0;
  for (std::size_t block = 0; block < blocks(); ++block) {
    weightTotal += impl_->weightSquares[block];
    otherTotal += impl_->otherSquares[block];
  }
  UpdateNumbers scaled = impl_->numbers;
  scaled.learningRate *= impl_->math.trustRatio(scaled, weightTotal, otherTotal);
  impl_->scalars = impl_->math.scalars(scaled);
}

void UpdateRun::runOnPool(int phase, std::size_t first, std::size_t end) {
  const std::size_t claims = (end - first + kBlocksPerClaim - 1) / kBlocksPerClaim;
  if (claims <= 1) {
    runBlocks(phase, first, end);
    return;
  }
  ThreadPool::shared().parallel(claims, [this, phase, first, end](std::size_t claim) {
    const std::size_t begin = first + claim * kBlocksPerClaim;
    runBlocks(phase, begin, std::min(begin + kBlocksPerClaim, end));
  });
}

void UpdateRun::execute() {
  for (int phase = 0; phase < phases(); ++phase) {
    runOnPool(phase, 0, blocks());
    endPhase(phase);
  }
}

}  // namespace gradlink

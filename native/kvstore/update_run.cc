#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "core/reduce_kernels.h"
#include "core/thread_pool.h"
#include "kvstore/optimizer.h"
#include "kvstore/optimizer_math.h"

namespace gradlink {

namespace {

// Blocks that one thread takes at a time: 64 Ki elements, enough to hide what it costs to claim
// them.
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
  /// float16's and bfloat16's float32 copy; null where there is none.
  float* master = nullptr;
  /// Sums of squares by block, so that their total does not depend on who computed which.
  std::vector<double> weightSquares;
  std::vector<double> otherSquares;

  bool half() const { return state.dtype == DType::float16 || state.dtype == DType::bfloat16; }

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

  /// The phase's work on elements that are in the precision of the step.
  template <class T>
  void step(int phase, std::size_t start, std::size_t count, T* weights, const T* grad) {
    const StepScalars<T> c = rounded<T>(scalars);
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
    std::array<T, kUpdateBlock> direction;
    function<T>(StepKernel::lambMoments)(arraysAt<T>(weights, grad, start, direction.data()), count,
                                         c);
    otherSquares[block] = squares(direction.data(), count);
  }

  /// The gradient at `start`: the caller's own array when there is one, else the sum, in `scratch`.
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

  template <class T>
  void runFull(int phase, std::size_t start, std::size_t end) {
    auto* weights = static_cast<T*>(weight);
    const bool wholeRange = grads.size() == 1 && (math.ratio == TrustRatio::none || phase == 1);
    if (wholeRange) {
      step<T>(phase, start, end - start, weights + start, static_cast<const T*>(grads[0]) + start);
      return;
    }
    std::array<T, kUpdateBlock> sum;
    // lamb's second phase does not look at the gradient.
    const bool needsGradient = !(math.ratio == TrustRatio::lamb && phase == 1);
    for (; start < end; start += kUpdateBlock) {
      const std::size_t count = std::min(kUpdateBlock, end - start);
      const void* grad = needsGradient ? gradientAt(start, count, sum.data()) : nullptr;
      step<T>(phase, start, count, weights + start, static_cast<const T*>(grad));
    }
  }

  void runHalf(int phase, std::size_t start, std::size_t end) {
    const KvKernels& kernels = kvKernels();
    const auto widen = state.dtype == DType::float16 ? kernels.fromFloat16 : kernels.fromBfloat16;
    const auto narrow = state.dtype == DType::float16 ? kernels.toFloat16 : kernels.toBfloat16;
    const bool writes = math.ratio == TrustRatio::none || phase == 1;
    std::array<float, kUpdateBlock> wide;
    std::array<float, kUpdateBlock> wideGrad;
    std::array<std::uint16_t, kUpdateBlock> sum;
    for (; start < end; start += kUpdateBlock) {
      const std::size_t count = std::min(kUpdateBlock, end - start);
      auto* narrowWeights = static_cast<std::uint16_t*>(weight) + start;
      widen(static_cast<const std::uint16_t*>(gradientAt(start, count, sum.data())),
            wideGrad.data(), count);
      float* weights = wide.data();
      if (master != nullptr) {
        weights = master + start;
      } else {
        widen(narrowWeights, weights, count);
      }
      step<float>(phase, start, count, weights, wideGrad.data());
      if (writes) {
        narrow(weights, narrowWeights, count);
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
                     {}}) {
  if (grads.empty()) {
    throw Error(ErrorCode::invalidArgument, "an update needs at least one gradient").stillUsable();
  }
  impl_->scalars = impl_->math.scalars(numbers);
  if (impl_->half() && impl_->math.flag("multiPrecision")) {
    impl_->master = static_cast<float*>(state.arrays.back().data.data());
  }
  if (impl_->math.ratio != TrustRatio::none) {
    impl_->weightSquares.resize(blocks());
    impl_->otherSquares.resize(blocks());
  }
}

UpdateRun::~UpdateRun() = default;

int UpdateRun::phases() const { return impl_->math.ratio == TrustRatio::none ? 1 : 2; }

std::size_t UpdateRun::blocks() const {
  return (impl_->state.count + kUpdateBlock - 1) / kUpdateBlock;
}

void UpdateRun::runBlocks(int phase, std::size_t first, std::size_t end) {
  const std::size_t from = first * kUpdateBlock;
  const std::size_t to = std::min(end * kUpdateBlock, impl_->state.count);
  if (from >= to) {
    return;
  }
  if (impl_->half()) {
    impl_->runHalf(phase, from, to);
  } else if (impl_->state.dtype == DType::float32) {
    impl_->runFull<float>(phase, from, to);
  } else {
    impl_->runFull<double>(phase, from, to);
  }
}

void UpdateRun::endPhase(int phase) {
  if (phase + 1 == phases()) {
    return;
  }
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

void UpdateRun::execute() {
  const std::size_t claims = (blocks() + kBlocksPerClaim - 1) / kBlocksPerClaim;
  for (int phase = 0; phase < phases(); ++phase) {
    if (claims <= 1) {
      runBlocks(phase, 0, blocks());
    } else {
      ThreadPool::shared().parallel(claims, [this, phase](std::size_t claim) {
        runBlocks(phase, claim * kBlocksPerClaim,
                  std::min((claim + 1) * kBlocksPerClaim, blocks()));
      });
    }
    endPhase(phase);
  }
}

}  // namespace gradlink

#include "kvstore/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "kvstore/base/misuse.h"
#include "kvstore/optimizer/math.h"

namespace gradlink {

namespace {

bool endsWith(const std::string& text, const char* suffix) {
  const std::size_t length = std::strlen(suffix);
  return text.size() >= length && text.compare(text.size() - length, length, suffix) == 0;
}

StateArray makeArray(std::string name, DType dtype, std::size_t count) {
  return {std::move(name), dtype, count, AlignedBuffer(count * sizeOf(dtype))};
}

/// Converts the weights to the precision of the step.
void copyWeights(void* to, const void* weight, std::size_t count, DType dtype) {
  if (count == 0) return;
  if (isHalf(dtype)) {
    widen(weight, static_cast<float*>(to), count, dtype);
  } else {
    copyBytes(to, weight, count * sizeOf(dtype));
  }
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec)
    : spec_(spec), math_(std::make_unique<OptimizerMath>(spec)) {
  if (spec_.scheduler) {
    checkScheduler(*spec_.scheduler);
  }
  for (const auto* multipliers : {&spec_.lrMult, &spec_.wdMult}) {
    for (const auto& [key, number] : *multipliers) {
      if (!std::isfinite(number)) {
        throw Error(ErrorCode::invalidArgument,
                    spec_.name + ": the multiplier of '" + key + "' must be a finite number");
      }
    }
  }
  learningRate_ = math_->value("learningRate");
  rescaleGrad_ = math_->value("rescaleGrad");
  beginNumUpdate_ = static_cast<std::int64_t>(math_->value("beginNumUpdate"));
  numUpdate_ = beginNumUpdate_;
}

Optimizer::~Optimizer() = default;

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec& spec) {
  return std::unique_ptr<Optimizer>(new Optimizer(spec));
}

bool Optimizer::lazy() const { return math_->lazy; }

std::unique_ptr<OptimizerState> Optimizer::createState(const std::string& key, const void* weight,
                                                       std::size_t count, DType dtype,
                                                       std::size_t rowLength) const {
  const bool half = isHalf(dtype);
  if (!half && dtype != DType::float32 && dtype != DType::float64) {
    throw storeMisuse("an optimizer needs float16, bfloat16, float32 or float64 arrays; key " +
                      key + " is " + nameOf(dtype));
  }
  auto state = std::make_unique<OptimizerState>();
  state->key = key;
  state->dtype = dtype;
  state->count = count;
  state->rowLength = rowLength;
  const DType precision = dtype == DType::float64 ? DType::float64 : DType::float32;
  const std::size_t kept = math_->isByRow() ? count / rowLength : count;
  for (const char* name : math_->stateNames) {
    state->arrays.push_back(makeArray(name, precision, kept));
  }
  if (half && math_->flag("multiPrecision")) {
    state->arrays.push_back(makeArray("master", DType::float32, count));
    copyWeights(state->arrays.back().data.data(), weight, count, dtype);
  }
  if (math_->kernel == StepKernel::dcasgd) {
    copyWeights(state->arrays.front().data.data(), weight, count, dtype);
  }
  return state;
}

bool Optimizer::copiesWeights(DType dtype) const {
  return math_->kernel == StepKernel::dcasgd || (isHalf(dtype) && math_->flag("multiPrecision"));
}

void Optimizer::checkState(const OptimizerState& state) const {
  const std::unique_ptr<OptimizerState> expected = createState(state.key, nullptr, 0, state.dtype);
  const auto list = [](const OptimizerState& of) {
    std::string text;
    for (const StateArray& array : of.arrays) {
      text += (text.empty() ? "" : ", ") + array.name + " " + nameOf(array.dtype);
    }
    return text.empty() ? std::string("none") : text;
  };
  const std::size_t rows = state.count / state.rowLength;
  const auto fits = [&](const StateArray& array) {
    const bool isMaster = array.name == "master";
    return array.count == (math_->isByRow() && !isMaster ? rows : state.count);
  };
  if (list(*expected) != list(state) ||
      !std::all_of(state.arrays.begin(), state.arrays.end(), fits)) {
    const std::string rule =
        math_->isByRow() ? " (the history: one for each of " + std::to_string(rows) + " rows)" : "";
    throw storeMisuse("the state of key " + state.key + " does not fit this " + spec_.name +
                      ": expected the arrays " + list(*expected) + " of " +
                      std::to_string(state.count) + " elements" + rule + ", got " + list(state) +
                      "; create the optimizer with the options it was saved with");
  }
}

const std::string& Optimizer::parameterName(const std::string& key) const {
  const auto named = spec_.paramNames.find(key);
  return named == spec_.paramNames.end() ? key : named->second;
}

double Optimizer::multiplier(const std::map<std::string, double>& multipliers,
                             const std::string& key, double otherwise) const {
  auto found = multipliers.find(key);
  if (found == multipliers.end()) {
    found = multipliers.find(parameterName(key));
  }
  return found == multipliers.end() ? otherwise : found->second;
}

double Optimizer::wdMultiplier(const std::string& key) const {
  const auto named = spec_.paramNames.find(key);
  double otherwise = 1;
  if (named != spec_.paramNames.end()) {
    const bool scaled = endsWith(named->second, "_gamma") && math_->ratio != TrustRatio::lars;
    otherwise = endsWith(named->second, "_weight") || scaled ? 1 : 0;
  }
  return multiplier(spec_.wdMult, key, otherwise);
}

double Optimizer::currentRate() const {
  return spec_.scheduler ? learningRateAt(*spec_.scheduler, numUpdate_) : learningRate_;
}

UpdateNumbers Optimizer::issue(OptimizerState& state) {
  const std::lock_guard lock(mutex_);
  const double rateBefore = currentRate();
  if (state.updates == 0) {
    state.updates = beginNumUpdate_;
  }
  state.updates += 1;
  numUpdate_ = std::max(numUpdate_, state.updates);

  const double rate = math_->asksRateFirst() ? rateBefore : currentRate();
  UpdateNumbers numbers{};
  numbers.learningRate = rate * multiplier(spec_.lrMult, state.key, 1);
  numbers.wd = math_->value("wd") * wdMultiplier(state.key);
  numbers.rescaleGrad = rescaleGrad_;
  numbers.t = state.updates;
  numbers.momentumScale = 1;
  if (math_->ratio == TrustRatio::lars) {
    const std::string& name = parameterName(state.key);
    numbers.layerwise =
        !endsWith(name, "gamma") && !endsWith(name, "beta") && !endsWith(name, "bias");
    if (math_->flag("momentumCorrection") && state.lastLearningRate != 0) {
      numbers.momentumScale = rate / state.lastLearningRate;
    }
  }
  state.lastLearningRate = rate;
  return numbers;
}

void Optimizer::update(OptimizerState& state, void* weight, std::span<const void* const> grads) {
  const UpdateNumbers numbers = issue(state);
  UpdateRun(*this, state, numbers, weight, grads).execute();
}

double Optimizer::learningRate() const {
  const std::lock_guard lock(mutex_);
  return currentRate();
}

void Optimizer::setLearningRate(double value) {
  if (spec_.scheduler) {
    throw Error(
        ErrorCode::invalidArgument,
        "the learning rate is decided by the optimizer's schedule: create the optimizer without "
        "lrScheduler to set the rate by hand");
  }
  if (!std::isfinite(value)) {
    throw Error(ErrorCode::invalidArgument,
                "learningRate must be a finite number, got " + std::to_string(value));
  }
  const std::lock_guard lock(mutex_);
  learningRate_ = value;
  spec_.numbers["learningRate"] = value;
}

double Optimizer::rescaleGrad() const {
  const std::lock_guard lock(mutex_);
  return rescaleGrad_;
}

void Optimizer::setRescaleGrad(double value) {
  if (!std::isfinite(value)) {
    throw Error(ErrorCode::invalidArgument,
                "rescaleGrad must be a finite number, got " + std::to_string(value));
  }
  const std::lock_guard lock(mutex_);
  rescaleGrad_ = value;
  spec_.numbers["rescaleGrad"] = value;
}

std::int64_t Optimizer::numUpdate() const {
  const std::lock_guard lock(mutex_);
  return numUpdate_;
}

void Optimizer::setNumUpdate(std::int64_t value) {
  const std::lock_guard lock(mutex_);
  numUpdate_ = value;
}

}  // namespace gradlink

#include "binding/store/optimizer_wrap.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/store/optimizer_spec.h"
#include "kvstore/base/misuse.h"
#include "kvstore/optimizer/lr_scheduler.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/optimizer_options.h"

namespace gradlink::binding {

namespace {

constexpr const char* kOptimizerClass = "NativeOptimizer";

std::string extentOf(std::size_t count, DType dtype, std::size_t rowLength) {
  return std::to_string(count) + " elements of " + nameOf(dtype) +
         (rowLength == 1 ? "" : " in rows of " + std::to_string(rowLength));
}

Napi::Value optionOf(Napi::Env env, const OptimizerOption& option) {
  Napi::Object object = Napi::Object::New(env);
  object["name"] = option.name;
  object["fallback"] =
      std::isnan(option.fallback) ? env.Null() : Napi::Number::New(env, option.fallback);
  object["range"] = nameOf(option.range);
  return object;
}

Napi::Value definitionsOf(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Array all = Napi::Array::New(env);
  for (const OptimizerDefinition& definition : optimizerDefinitions()) {
    Napi::Array options = Napi::Array::New(env);
    for (const OptimizerOption& option : definition.options) {
      options[options.Length()] = optionOf(env, option);
    }
    Napi::Object object = Napi::Object::New(env);
    object["name"] = definition.name;
    object["hasOwnRate"] = Napi::Boolean::New(env, definition.hasOwnRate);
    const auto kernel = Optimizer::create({definition.name, {}, {}, {}, {}, {}})->math().kernel;
    object["onGpus"] = Napi::Boolean::New(env, runsOnGpus(kernel));
    object["options"] = options;
    all[all.Length()] = object;
  }
  return all;
}

Napi::Value rateAt(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const SchedulerSpec schedule = schedulerSpecArg(info[0]);
    checkDecay(schedule);
    constexpr std::int64_t kMost = (std::int64_t{1} << 53) - 1;
    const std::int64_t numUpdate = integerArg(info[1], "numUpdate", 0, kMost);
    return Napi::Number::New(info.Env(), learningRateAt(schedule, numUpdate));
  });
}

}  // namespace

void exportOptimizer(Napi::Env env, Napi::Object exports) {
  OptimizerWrap::define(env, exports);
  exports.Set("optimizerDefinitions",
              Napi::Function::New<definitionsOf>(env, "optimizerDefinitions"));
  exports.Set("rateAt", Napi::Function::New<rateAt>(env, "rateAt"));
}

void OptimizerWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = OptimizerWrap;
  exports.Set(kOptimizerClass,
              DefineClass(env, kOptimizerClass,
                          {InstanceMethod<&Wrap::update>("update"),
                           InstanceMethod<&Wrap::learningRate>("learningRate"),
                           InstanceMethod<&Wrap::setLearningRate>("setLearningRate"),
                           InstanceMethod<&Wrap::setRescaleGrad>("setRescaleGrad"),
                           InstanceMethod<&Wrap::numUpdate>("numUpdate"),
                           InstanceMethod<&Wrap::saveStates>("saveStates"),
                           InstanceMethod<&Wrap::loadStates>("loadStates")}));
}

OptimizerWrap::OptimizerWrap(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<OptimizerWrap>(info) {
  guarded(info.Env(), [&] { optimizer_ = Optimizer::create(optimizerSpecArg(info[0])); });
}

Napi::Value OptimizerWrap::update(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::string key = stringArg(info[0], "key");
    const DType dtype = dtypeArg(info[1]);
    const BufferView weight = viewOf(info[2], dtype, "weight");
    const Napi::Array list = arrayArg(info[3], "grad");
    std::vector<const void*> grads;
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
      grads.push_back(memoryOf(list.Get(i), dtype, weight.length, "grad"));
    }
    const std::size_t rowLength = countArg(info[4], "rowLength");
    if (rowLength == 0 || weight.length % rowLength != 0) {
      throw storeMisuse("rowLength must divide the " + std::to_string(weight.length) +
                        " elements of the weight, got " + std::to_string(rowLength));
    }
    const auto found = states_.find(key);
    if (found == states_.end()) {
      auto state = optimizer_->createState(key, weight.data, weight.length, dtype, rowLength);
      optimizer_->update(*state, weight.data, grads);
      states_.emplace(key, std::move(state));
    } else {
      OptimizerState& state = *found->second;
      if (state.dtype != dtype || state.count != weight.length || state.rowLength != rowLength) {
        throw storeMisuse("key " + key + " had " +
                          extentOf(state.count, state.dtype, state.rowLength) + " so far, got " +
                          extentOf(weight.length, dtype, rowLength) +
                          ": give every array a key of its own");
      }
      optimizer_->update(state, weight.data, grads);
    }
    return info.Env().Undefined();
  });
}

Napi::Value OptimizerWrap::learningRate(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), optimizer_->learningRate());
}

Napi::Value OptimizerWrap::setLearningRate(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    optimizer_->setLearningRate(numberArg(info[0], "learningRate"));
    return info.Env().Undefined();
  });
}

Napi::Value OptimizerWrap::setRescaleGrad(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    optimizer_->setRescaleGrad(numberArg(info[0], "rescaleGrad"));
    return info.Env().Undefined();
  });
}

Napi::Value OptimizerWrap::numUpdate(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(optimizer_->numUpdate()));
}

Napi::Value OptimizerWrap::saveStates(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    std::vector<const OptimizerState*> states;
    for (const auto& entry : states_) states.push_back(entry.second.get());
    const std::vector<std::uint8_t> bytes = gradlink::saveStates(*optimizer_, states, false);
    Napi::Uint8Array array = Napi::Uint8Array::New(info.Env(), bytes.size());
    std::memcpy(array.Data(), bytes.data(), bytes.size());
    return array;
  });
}

Napi::Value OptimizerWrap::loadStates(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const BufferView view = viewOf(info[0], DType::uint8, "states");
    LoadedStates loaded =
        gradlink::loadStates({static_cast<const std::uint8_t*>(view.data), view.length});
    // The file's options are those of a store: this optimizer keeps its own.
    if (optimizer_->spec().name != loaded.optimizerName) {
      throw storeMisuse("these are states of " + loaded.optimizerName + ", this optimizer is " +
                        optimizer_->spec().name);
    }
    std::map<std::string, std::unique_ptr<OptimizerState>> states;
    for (auto& state : loaded.states) {
      optimizer_->checkState(*state);
      states[state->key] = std::move(state);
    }
    optimizer_->setNumUpdate(loaded.numUpdate);
    states_ = std::move(states);
    return info.Env().Undefined();
  });
}

}  // namespace gradlink::binding

#include "binding/store/optimizer_spec.h"

#include <string>

#include "binding/args.h"

namespace gradlink::binding {

namespace {

constexpr std::int64_t kMaxSafeInteger = (std::int64_t{1} << 53) - 1;

std::map<std::string, double> numbersArg(const Napi::Value& value, const char* name) {
  std::map<std::string, double> numbers;
  if (value.IsUndefined()) return numbers;
  const Napi::Object object = objectArg(value, name);
  const Napi::Array keys = object.GetPropertyNames();
  for (std::uint32_t i = 0; i < keys.Length(); ++i) {
    const std::string key = keys.Get(i).ToString().Utf8Value();
    numbers[key] = numberArg(object.Get(key), key.c_str());
  }
  return numbers;
}

std::int64_t updatesArg(const Napi::Object& spec, const char* name) {
  return integerArg(spec.Get(name), name, 0, kMaxSafeInteger);
}

}  // namespace

SchedulerSpec schedulerSpecArg(const Napi::Value& value) {
  const Napi::Object object = objectArg(value, "lrScheduler");
  SchedulerSpec spec;
  spec.kind = static_cast<SchedulerKind>(integerArg(object.Get("kind"), "kind", 0, 4));
  spec.baseLr = numberArg(object.Get("baseLr"), "baseLr");
  spec.warmupSteps = updatesArg(object, "warmupSteps");
  spec.warmupBeginLr = numberArg(object.Get("warmupBeginLr"), "warmupBeginLr");
  spec.warmupFinalLr = numberArg(object.Get("warmupFinalLr"), "warmupFinalLr");
  spec.warmupMode =
      static_cast<WarmupMode>(integerArg(object.Get("warmupMode"), "warmupMode", 0, 1));
  const Napi::Array steps = arrayArg(object.Get("steps"), "steps");
  for (std::uint32_t i = 0; i < steps.Length(); ++i) {
    spec.steps.push_back(integerArg(steps.Get(i), "steps", 1, kMaxSafeInteger));
  }
  const Napi::Array rates = arrayArg(object.Get("rates"), "rates");
  for (std::uint32_t i = 0; i < rates.Length(); ++i) {
    spec.rates.push_back(numberArg(rates.Get(i), "rates"));
  }
  spec.factor = numberArg(object.Get("factor"), "factor");
  spec.stopFactorLr = numberArg(object.Get("stopFactorLr"), "stopFactorLr");
  spec.maxUpdate = updatesArg(object, "maxUpdate");
  spec.finalLr = numberArg(object.Get("finalLr"), "finalLr");
  spec.power = numberArg(object.Get("power"), "power");
  return spec;
}

OptimizerSpec optimizerSpecArg(const Napi::Value& value) {
  const Napi::Object object = objectArg(value, "optimizer");
  OptimizerSpec spec;
  spec.name = stringArg(object.Get("name"), "name");
  spec.numbers = numbersArg(object.Get("numbers"), "numbers");
  spec.lrMult = numbersArg(object.Get("lrMult"), "lrMult");
  spec.wdMult = numbersArg(object.Get("wdMult"), "wdMult");
  if (object.Has("paramNames")) {
    const Napi::Object names = objectArg(object.Get("paramNames"), "paramNames");
    const Napi::Array keys = names.GetPropertyNames();
    for (std::uint32_t i = 0; i < keys.Length(); ++i) {
      const std::string key = keys.Get(i).ToString().Utf8Value();
      spec.paramNames[key] = stringArg(names.Get(key), "paramNames");
    }
  }
  if (object.Has("scheduler")) {
    spec.scheduler = schedulerSpecArg(object.Get("scheduler"));
    checkScheduler(*spec.scheduler);
  }
  return spec;
}

}  // namespace gradlink::binding

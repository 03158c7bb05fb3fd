// Options and results of measurements between JavaScript and C++.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "binding/args.h"
#include "binding/napi_setup.h"
#include "measure/pattern.h"

namespace gradlink::binding {

class MeasureThread;

inline int intOf(const Napi::Object& options, const char* name, int low,
                 std::int64_t high = kMaxInt) {
  return static_cast<int>(integerArg(options.Get(name), name, low, high));
}

template <class Enum>
Enum enumOf(const Napi::Object& options, const char* name, int count) {
  return static_cast<Enum>(intOf(options, name, 0, count - 1));
}

inline Napi::Float64Array toArray(Napi::Env env, const std::vector<double>& values) {
  Napi::Float64Array array = Napi::Float64Array::New(env, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) array[i] = values[i];
  return array;
}

inline Napi::Value toValue(Napi::Env env, const std::optional<measure::WrongElement>& wrong) {
  if (!wrong) return env.Null();
  Napi::Object object = Napi::Object::New(env);
  object.Set("rank", wrong->rank);
  object.Set("index", static_cast<double>(wrong->index));
  object.Set("got", Napi::BigInt::New(env, wrong->got));
  object.Set("expected", Napi::BigInt::New(env, wrong->expected));
  return object;
}

void exportGpuMeasure(Napi::Env, Napi::Object exports, const std::shared_ptr<MeasureThread>&);

/// The gradients that `measure` pushes, and their expected results.
void exportStoreCheck(Napi::Env, Napi::Object exports);

}  // namespace gradlink::binding

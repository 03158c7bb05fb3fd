// The gradients that `measure` pushes, and their expected results: see lib/native/measure.ts.
#include "measure/store_check.h"

#include <cstdint>
#include <string>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/errors.h"
#include "binding/measure/values.h"
#include "measure/uniform_numbers.h"

namespace gradlink::binding {
namespace {

using measure::CheckedArray;
using measure::CheckedCompression;
using measure::DrawnArray;
using measure::PushedArray;
using measure::PushRule;

constexpr std::int64_t kMaxStart = 0xffffffff;

/// (arrays, dtype, starts)
Napi::Value drawUniform(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Napi::Array arrays = arrayArg(info[0], "arrays");
    const DType dtype = dtypeArg(info[1]);
    const Napi::Array starts = arrayArg(info[2], "starts");
    std::vector<DrawnArray> drawn(arrays.Length());
    for (std::uint32_t i = 0; i < arrays.Length(); ++i) {
      const BufferView view = viewOf(arrays.Get(i), dtype, "array");
      drawn[i] = {view.data, view.length,
                  static_cast<std::uint32_t>(integerArg(starts.Get(i), "start", 0, kMaxStart))};
    }
    measure::drawUniform(drawn, dtype);
    return info.Env().Undefined();
  });
}

/// (bytes)
Napi::Value touchMemory(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const BufferView view = viewOf(info[0], DType::uint8, "bytes");
    measure::touchMemory(view.data, view.length);
    return info.Env().Undefined();
  });
}

PushRule ruleOf(const Napi::Object& given) {
  PushRule rule;
  rule.dtype = enumOf<DType>(given, "dtype", kDTypeCount);
  rule.workers = numberArg(given.Get("workers"), "workers");
  rule.compression = enumOf<CheckedCompression>(given, "compression", 3);
  rule.threshold = static_cast<float>(numberArg(given.Get("threshold"), "threshold"));
  rule.compressesSums = booleanArg(given.Get("compressesSums"), "compressesSums");
  return rule;
}

/// The arrays of a list, each of at least `count` elements.
template <class Pointer>
std::vector<Pointer> memoriesOf(const Napi::Value& value, DType dtype, std::size_t count,
                                const char* name) {
  const Napi::Array list = arrayArg(value, name);
  std::vector<Pointer> memories(list.Length());
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    memories[i] = static_cast<Pointer>(memoryOf(list.Get(i), dtype, count, name));
  }
  return memories;
}

PushedArray pushedOf(const Napi::Object& given, const PushRule& rule) {
  PushedArray pushed;
  pushed.count = countArg(given.Get("count"), "count");
  pushed.gradients =
      memoriesOf<const void*>(given.Get("gradients"), rule.dtype, pushed.count, "gradients");
  pushed.residuals =
      memoriesOf<float*>(given.Get("residuals"), DType::float32, pushed.count, "residuals");
  const std::size_t needed = rule.compression == CheckedCompression::none ? 0
                             : rule.compressesSums                        ? 1
                                                                          : pushed.gradients.size();
  if (pushed.residuals.size() < needed) {
    throw argumentError(given.Env(), "residuals", std::to_string(needed) + " arrays",
                        std::to_string(pushed.residuals.size()));
  }
  return pushed;
}

/// (into, pushed, rule)
Napi::Value sumPushed(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const PushRule rule = ruleOf(objectArg(info[2], "rule"));
    const PushedArray pushed = pushedOf(objectArg(info[1], "pushed"), rule);
    void* const into = memoryOf(info[0], DType::float64, pushed.count, "into");
    measure::sumPushed(static_cast<double*>(into), pushed, rule);
    return info.Env().Undefined();
  });
}

/// (arrays, rule, bound)
Napi::Value checkOuts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Array given = arrayArg(info[0], "arrays");
    const PushRule rule = ruleOf(objectArg(info[1], "rule"));
    std::vector<CheckedArray> arrays(given.Length());
    for (std::uint32_t i = 0; i < given.Length(); ++i) {
      const Napi::Object one = objectArg(given.Get(i), "array");
      arrays[i].pushed = pushedOf(one, rule);
      const std::size_t count = arrays[i].pushed.count;
      arrays[i].outs = memoriesOf<const void*>(one.Get("outs"), rule.dtype, count, "outs");
      const Napi::Value expected = one.Get("expected");
      if (expected.IsNull()) continue;
      arrays[i].expected =
          static_cast<const double*>(memoryOf(expected, DType::float64, count, "expected"));
    }
    const auto checked = measure::checkOuts(arrays, rule, numberArg(info[2], "bound"));
    Napi::Object object = Napi::Object::New(env);
    object.Set("magnitudes", toArray(env, checked.magnitudes));
    object.Set("differences", toArray(env, checked.differences));
    object.Set("wrong", toArray(env, checked.wrong));
    return object;
  });
}

}  // namespace

void exportStoreCheck(Napi::Env env, Napi::Object exports) {
  exports.Set("drawUniform", Napi::Function::New<drawUniform>(env, "drawUniform"));
  exports.Set("touchMemory", Napi::Function::New<touchMemory>(env, "touchMemory"));
  exports.Set("sumPushed", Napi::Function::New<sumPushed>(env, "sumPushed"));
  exports.Set("checkOuts", Napi::Function::New<checkOuts>(env, "checkOuts"));
}

}  // namespace gradlink::binding

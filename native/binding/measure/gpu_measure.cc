// Measurements of GPUs, as lib/native/gpu-measure.ts declares them.
#include <memory>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/gpu/info.h"
#include "binding/measure/thread.h"
#include "binding/measure/values.h"
#include "binding/pending_op.h"
#include "measure/gpu/copies.h"
#include "measure/gpu/kernel_times.h"
#include "measure/gpu/latency.h"

namespace gradlink::binding {
namespace {

using measure::GpuCopiesOptions;
using measure::GpuCopiesResult;
using measure::GpuLatencyOptions;
using measure::GpuLatencyResult;
using measure::GpuLoopOptions;
using measure::GpuLoopResult;

measure::GpuCopy copyOf(const Napi::Object& given) {
  return {.from = intOf(given, "from", measure::kHostMemory),
          .to = intOf(given, "to", measure::kHostMemory),
          .by = intOf(given, "by", 0),
          .kernel = booleanArg(given.Get("kernel"), "kernel")};
}

GpuCopiesOptions copiesOf(const Napi::Object& given) {
  GpuCopiesOptions options;
  const Napi::Array copies = arrayArg(given.Get("copies"), "copies");
  for (std::uint32_t i = 0; i < copies.Length(); ++i) {
    options.copies.push_back(copyOf(objectArg(copies.Get(i), "copies")));
  }
  options.measured = countArg(given.Get("measured"), "measured");
  options.bytes = countArg(given.Get("bytes"), "bytes");
  options.warmup = intOf(given, "warmup", 0);
  options.loops = intOf(given, "loops", 1);
  options.samples = intOf(given, "samples", 1);
  options.verify = booleanArg(given.Get("verify"), "verify");
  options.peerAccess = booleanArg(given.Get("peerAccess"), "peerAccess");
  options.affinity = booleanArg(given.Get("affinity"), "affinity");
  options.health = booleanArg(given.Get("health"), "health");
  options.hostTimes = booleanArg(given.Get("hostTimes"), "hostTimes");
  options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
  return options;
}

Napi::Array flags(Napi::Env env, const std::vector<bool>& values) {
  Napi::Array array = Napi::Array::New(env, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    array.Set(static_cast<std::uint32_t>(i), Napi::Boolean::New(env, values[i]));
  }
  return array;
}

Napi::Object resultObject(Napi::Env env, const GpuCopiesResult& result) {
  Napi::Object object = Napi::Object::New(env);
  Napi::Array seconds = Napi::Array::New(env, result.seconds.size());
  for (std::size_t i = 0; i < result.seconds.size(); ++i) {
    seconds.Set(static_cast<std::uint32_t>(i), toArray(env, result.seconds[i]));
  }
  Napi::Array health = Napi::Array::New(env, result.health.size());
  for (std::size_t i = 0; i < result.health.size(); ++i) {
    Napi::Object one = Napi::Object::New(env);
    one.Set("gpu", result.health[i].first);
    one.Set("health", toObject(env, result.health[i].second));
    health.Set(static_cast<std::uint32_t>(i), one);
  }
  object.Set("seconds", seconds);
  object.Set("spanSeconds", toArray(env, result.spanSeconds));
  object.Set("issueSeconds", toArray(env, result.issueSeconds));
  object.Set("hostSeconds", toArray(env, result.hostSeconds));
  object.Set("wrong", static_cast<double>(result.wrong));
  object.Set("firstWrong", toValue(env, result.firstWrong));
  object.Set("direct", flags(env, result.direct));
  object.Set("near", flags(env, result.near));
  object.Set("health", health);
  return object;
}

GpuLatencyOptions latencyOf(const Napi::Object& given) {
  GpuLatencyOptions options;
  options.by = intOf(given, "by", 0);
  options.memory = intOf(given, "memory", measure::kHostMemory);
  options.nodes = countArg(given.Get("nodes"), "nodes");
  options.stride = countArg(given.Get("stride"), "stride");
  options.steps = static_cast<std::uint32_t>(intOf(given, "steps", 1));
  options.samples = intOf(given, "samples", 1);
  options.affinity = booleanArg(given.Get("affinity"), "affinity");
  options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
  return options;
}

Napi::Object resultObject(Napi::Env env, const GpuLatencyResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("seconds", toArray(env, result.seconds));
  object.Set("multiprocessorSeconds", toArray(env, result.multiprocessorSeconds));
  object.Set("wrong", static_cast<double>(result.wrong));
  object.Set("near", result.near);
  return object;
}

GpuLoopOptions loopOf(const Napi::Object& given) {
  GpuLoopOptions options;
  options.loop = enumOf<measure::GpuLoop>(given, "loop", measure::kGpuLoopCount);
  options.gpu = intOf(given, "gpu", 0);
  options.count = countArg(given.Get("count"), "count");
  options.arrays = intOf(given, "arrays", 1, 1024);
  options.warmup = intOf(given, "warmup", 0);
  options.loops = intOf(given, "loops", 1);
  options.samples = intOf(given, "samples", 1);
  options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
  return options;
}

Napi::Object resultObject(Napi::Env env, const GpuLoopResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("seconds", toArray(env, result.seconds));
  object.Set("bytes", result.bytes);
  return object;
}

template <class Options, class Result>
Napi::Value start(const Napi::CallbackInfo& info, MeasureThread& thread,
                  Options (*read)(const Napi::Object&), Result (*measure)(const Options&)) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Options options = read(objectArg(info[0], "options"));
    auto result = std::make_shared<Result>();
    return PendingOp::start(
        env, thread.queue, [options, result, measure] { *result = measure(options); },
        [result](Napi::Env ended) -> Napi::Value { return resultObject(ended, *result); });
  });
}

}  // namespace

void exportGpuMeasure(Napi::Env env, Napi::Object exports,
                      const std::shared_ptr<MeasureThread>& thread) {
  const auto add = [&](const char* name, auto call) {
    exports.Set(name, Napi::Function::New(env, call, name));
  };
  add("gpuCopies", [thread](const Napi::CallbackInfo& info) {
    return start(info, *thread, copiesOf, measure::timeGpuCopies);
  });
  add("gpuLatency", [thread](const Napi::CallbackInfo& info) {
    return start(info, *thread, latencyOf, measure::timeGpuLatency);
  });
  add("gpuLoop", [thread](const Napi::CallbackInfo& info) {
    return start(info, *thread, loopOf, measure::timeGpuLoop);
  });
}

}  // namespace gradlink::binding

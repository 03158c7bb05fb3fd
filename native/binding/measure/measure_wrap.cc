// Measuring, as lib/native/measure.ts declares it.
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/measure/thread.h"
#include "binding/measure/values.h"
#include "binding/pending_op.h"
#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "core/thread_pool.h"
#include "measure/between_cores.h"
#include "measure/collective_loop.h"
#include "measure/core_rates.h"
#include "measure/gpu/collective.h"
#include "measure/memory_bandwidth.h"
#include "measure/message_loop.h"
#include "measure/pattern.h"
#include "shm/wake_up.h"

namespace gradlink::binding {
namespace {

using measure::BetweenCores;
using measure::BetweenCoresOptions;
using measure::CollectiveOptions;
using measure::CoreRates;
using measure::CoreRatesOptions;
using measure::GpuCollectiveOptions;
using measure::GpuCollectiveResult;
using measure::MemoryBandwidth;
using measure::MemoryBandwidthOptions;
using measure::MessageOptions;
using measure::MessageResult;
using measure::Pattern;
using nccl::RegistrationKind;

Napi::Value simdLevelName(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), simdLevel());
}

Napi::Value numThreads(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ThreadPool::shared().width());
}

Napi::Value wakeUpSeconds(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), shm::wakeUp().nanoseconds / 1e9);
}

Napi::Value startMemoryBandwidth(const Napi::CallbackInfo& info, MeasureThread& thread) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object given = objectArg(info[0], "options");
    MemoryBandwidthOptions options;
    options.loop = enumOf<measure::MemoryLoop>(given, "loop", measure::kMemoryLoopCount);
    options.bytes = countArg(given.Get("bytes"), "bytes");
    options.arrays = intOf(given, "arrays", 1, 1024);
    options.threads = intOf(given, "threads", 1, 1024);
    options.warmup = intOf(given, "warmup", 0);
    options.samples = intOf(given, "samples", 1);
    options.repeats = intOf(given, "repeats", 1);
    const Napi::Value hugePages = given.Get("hugePages");
    if (!hugePages.IsUndefined()) options.hugePages = booleanArg(hugePages, "hugePages");
    const Napi::Value kept = given.Get("keep");
    if (!kept.IsUndefined()) options.keep = booleanArg(kept, "keep");
    auto result = std::make_shared<MemoryBandwidth>();
    return PendingOp::start(
        env, thread.queue, [options, result] { *result = measure::memoryBandwidth(options); },
        [result](Napi::Env ended) -> Napi::Value {
          Napi::Object object = Napi::Object::New(ended);
          object.Set("seconds", toArray(ended, result->seconds));
          object.Set("bytes", result->bytes);
          return object;
        });
  });
}

Napi::Value startCoreRates(const Napi::CallbackInfo& info, MeasureThread& thread) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object given = objectArg(info[0], "options");
    const Napi::Array cores = arrayArg(given.Get("cores"), "cores");
    CoreRatesOptions options;
    for (std::uint32_t i = 0; i < cores.Length(); ++i) {
      options.cores.push_back(static_cast<int>(integerArg(cores.Get(i), "core", 0, kMaxInt)));
    }
    options.rounds = intOf(given, "rounds", 1);
    options.roundSeconds = numberArg(given.Get("roundSeconds"), "roundSeconds");
    auto result = std::make_shared<CoreRates>();
    return PendingOp::start(
        env, thread.queue, [options, result] { *result = measure::coreRates(options); },
        [result](Napi::Env ended) -> Napi::Value {
          Napi::Object object = Napi::Object::New(ended);
          object.Set("stepsPerSecond", toArray(ended, result->stepsPerSecond));
          object.Set("shares", toArray(ended, result->shares));
          return object;
        });
  });
}

CollectiveOptions collectiveOptions(const Napi::Object& given) {
  CollectiveOptions options;
  options.collective = &measure::recordNamed(stringArg(given.Get("collective"), "collective"));
  options.count = countArg(given.Get("count"), "count");
  options.dtype = enumOf<DType>(given, "dtype", kDTypeCount);
  options.op = enumOf<ReduceOp>(given, "op", kReduceOpCount);
  options.root = intOf(given, "root", 0);
  options.inPlace = booleanArg(given.Get("inPlace"), "inPlace");
  options.shared = booleanArg(given.Get("shared"), "shared");
  options.warmup = intOf(given, "warmup", 0);
  options.samples = intOf(given, "samples", 1);
  options.batch = intOf(given, "batch", 1);
  options.combine = enumOf<measure::Combine>(given, "combine", 4);
  options.verify = booleanArg(given.Get("verify"), "verify");
  options.seed = countArg(given.Get("seed"), "seed");
  options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
  return options;
}

GpuCollectiveOptions gpuCollectiveOptions(const Napi::Object& all) {
  GpuCollectiveOptions options;
  static_cast<CollectiveOptions&>(options) = collectiveOptions(all);
  if (all.Get("gpu").IsUndefined()) return options;
  const Napi::Object given = objectArg(all.Get("gpu"), "gpu");
  options.graphLaunches = intOf(given, "graphLaunches", 0);
  options.waiting = enumOf<measure::Waiting>(given, "waiting", 4);
  const Napi::Value aggregate = given.Get("aggregate");
  if (!aggregate.IsUndefined()) options.aggregate = booleanArg(aggregate, "aggregate");
  if (given.Has("unalign")) options.unalign = countArg(given.Get("unalign"), "unalign");
  if (given.Has("shiftedThrough")) {
    options.shiftedThrough = countArg(given.Get("shiftedThrough"), "shiftedThrough");
  }
  const int registration = intOf(given, "registration", 0, 2);
  if (registration != 0) options.registration = static_cast<RegistrationKind>(registration - 1);
  return options;
}

/// Runs `work` on the queue of the communicator info[0]; resolves to `finish` of its result.
template <class Work, class Finish>
Napi::Promise startOn(const Napi::CallbackInfo& info, Work work, Finish finish) {
  using Result = std::invoke_result_t<Work, Communicator&>;
  CommunicatorHandle* const handle = CommunicatorWrap::unwrap(info[0]).get();
  handle->open();
  auto result = std::make_shared<Result>();
  Kept kept;
  keep(kept, info[0]);  // and with it the handle
  return PendingOp::start(
      info.Env(), handle->queue(),
      [handle, work = std::move(work), result] { *result = work(handle->communicator()); },
      [finish = std::move(finish), result](Napi::Env ended) -> Napi::Value {
        return finish(ended, *result);
      },
      std::move(kept));
}

Napi::Object collectiveObject(Napi::Env env, const GpuCollectiveResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("seconds", toArray(env, result.seconds));
  object.Set("totalSeconds", result.totalSeconds);
  object.Set("wrongBefore", static_cast<double>(result.wrongBefore));
  object.Set("wrongAfter", static_cast<double>(result.wrongAfter));
  object.Set("firstWrong", toValue(env, result.firstWrong));
  object.Set("queueingSeconds", result.queueingSeconds
                                    ? Napi::Value(Napi::Number::New(env, *result.queueingSeconds))
                                    : env.Null());
  object.Set("registration", result.registered ? static_cast<int>(*result.registered) + 1 : 0);
  return object;
}

Napi::Value timeCollective(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const GpuCollectiveOptions options = gpuCollectiveOptions(objectArg(info[1], "options"));
    return startOn(
        info,
        [options](Communicator& communicator) -> GpuCollectiveResult {
          if (auto* const onGpus = dynamic_cast<nccl::NcclCommunicator*>(&communicator)) {
            return measure::timeGpuCollective(*onGpus, options);
          }
          if (isFloat8(options.dtype)) {
            throw Error(ErrorCode::unsupported,
                        std::string(nameOf(options.dtype)) + " is a type for ranks on GPUs")
                .withOp("timeCollective")
                .stillUsable();
          }
          return {measure::timeCollective(communicator, options), {}, {}};
        },
        collectiveObject);
  });
}

/// (communicator, options)
Napi::Value timeBetweenCores(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Napi::Object given = objectArg(info[1], "options");
    BetweenCoresOptions options;
    options.bytes = countArg(given.Get("bytes"), "bytes");
    options.distance = intOf(given, "distance", 1);
    options.warmup = intOf(given, "warmup", 0);
    options.samples = intOf(given, "samples", 1);
    options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
    return startOn(
        info,
        [options](Communicator& communicator) {
          return measure::timeBetweenCores(communicator, options);
        },
        [](Napi::Env ended, const BetweenCores& result) {
          Napi::Object object = Napi::Object::New(ended);
          object.Set("bytes", static_cast<double>(result.bytes));
          const auto list = [&](const measure::CrossingSeconds& seconds) {
            return toArray(ended, std::vector<double>(seconds.begin(), seconds.end()));
          };
          object.Set("plain", list(result.plain));
          object.Set("streaming", list(result.streaming));
          object.Set("wrong", static_cast<double>(result.wrong));
          return object;
        });
  });
}

/// (communicator, options)
Napi::Value timeMessages(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Napi::Object given = objectArg(info[1], "options");
    MessageOptions options;
    options.peer = intOf(given, "peer", 0);
    options.first = booleanArg(given.Get("first"), "first");
    options.bytes = countArg(given.Get("bytes"), "bytes");
    options.window = intOf(given, "window", 1);
    options.answerBytes = countArg(given.Get("answerBytes"), "answerBytes");
    options.warmup = intOf(given, "warmup", 0);
    options.samples = intOf(given, "samples", 1);
    options.verify = booleanArg(given.Get("verify"), "verify");
    options.timeoutMs = numberArg(given.Get("timeoutMs"), "timeoutMs");
    return startOn(
        info,
        [options](Communicator& communicator) {
          return measure::timeMessages(communicator, options);
        },
        [](Napi::Env ended, const MessageResult& result) {
          Napi::Object object = Napi::Object::New(ended);
          object.Set("seconds", toArray(ended, result.seconds));
          object.Set("wrong", static_cast<double>(result.wrong));
          return object;
        });
  });
}

/// A shape for each call; nothing for calls that are not collectives.
std::vector<std::optional<Shape>> shapesOf(const Napi::Array& calls) {
  std::vector<std::optional<Shape>> shapes(calls.Length());
  for (std::uint32_t i = 0; i < calls.Length(); ++i) {
    const Napi::Object call = objectArg(calls.Get(i), "call");
    const auto& record = measure::recordNamed(stringArg(call.Get("collective"), "collective"));
    if (!record.kind) continue;
    shapes[i] = record.shape(countArg(call.Get("count"), "count"),
                             enumOf<DType>(call, "dtype", kDTypeCount),
                             enumOf<ReduceOp>(call, "op", kReduceOpCount), intOf(call, "root", 0));
  }
  return shapes;
}

/// (communicator, calls, timeoutMs): NCCL's estimate for each call in seconds, or null.
Napi::Value estimateCollectives(const Napi::CallbackInfo& info) {
  using Estimates = std::vector<std::optional<double>>;
  return guarded(info.Env(), [&]() -> Napi::Value {
    const auto shapes = shapesOf(arrayArg(info[1], "calls"));
    const CallOptions call{numberArg(info[2], "timeoutMs")};
    return startOn(
        info,
        [shapes, call](Communicator& communicator) {
          Estimates seconds(shapes.size());
          auto* const onGpus = dynamic_cast<nccl::NcclCommunicator*>(&communicator);
          if (onGpus == nullptr) return seconds;
          std::vector<Shape> asked;
          for (const auto& shape : shapes) {
            if (shape) asked.push_back(*shape);
          }
          const auto estimates = onGpus->estimateSeconds(asked, call);
          std::size_t next = 0;
          for (std::size_t i = 0; i < shapes.size(); ++i) {
            if (shapes[i]) seconds[i] = estimates[next++];
          }
          return seconds;
        },
        [](Napi::Env ended, const Estimates& seconds) {
          Napi::Array array = Napi::Array::New(ended, seconds.size());
          for (std::uint32_t i = 0; i < seconds.size(); ++i) {
            const std::optional<double>& one = seconds[i];
            array.Set(i, one ? Napi::Value(Napi::Number::New(ended, *one)) : ended.Null());
          }
          return array;
        });
  });
}

Pattern patternOf(const Napi::Object& given) {
  Pattern pattern;
  pattern.dtype = enumOf<DType>(given, "dtype", kDTypeCount);
  pattern.op = enumOf<ReduceOp>(given, "op", kReduceOpCount);
  pattern.size = intOf(given, "size", 1);
  pattern.seed = countArg(given.Get("seed"), "seed");
  return pattern;
}

/// (array, pattern, first, rank)
Napi::Value fillPattern(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Pattern pattern = patternOf(objectArg(info[1], "pattern"));
    const BufferView view = viewOf(info[0], pattern.dtype, "array");
    const std::size_t first = countArg(info[2], "first");
    const int rank = static_cast<int>(integerArg(info[3], "rank", 0, kMaxInt));
    measure::fillPattern(view.data, first, view.length, pattern, rank);
    return info.Env().Undefined();
  });
}

/// (array, pattern, first, rank); rank -1 means the reduction of all.
Napi::Value countWrong(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Pattern pattern = patternOf(objectArg(info[1], "pattern"));
    const BufferView view = viewOf(info[0], pattern.dtype, "array");
    const std::size_t first = countArg(info[2], "first");
    const int rank = static_cast<int>(integerArg(info[3], "rank", -1, kMaxInt));
    const std::size_t wrong =
        rank < 0
            ? measure::countWrongReduction(view.data, first, view.length, pattern, pattern.size)
            : measure::countWrongInput(view.data, first, view.length, pattern, rank);
    return Napi::Number::New(info.Env(), static_cast<double>(wrong));
  });
}

}  // namespace

void exportMeasure(Napi::Env env, Napi::Object exports) {
  const auto thread = std::make_shared<MeasureThread>(Environment::of(env));
  exportGpuMeasure(env, exports, thread);
  exportStoreCheck(env, exports);
  exports.Set("simdLevel", Napi::Function::New<simdLevelName>(env, "simdLevel"));
  exports.Set("numThreads", Napi::Function::New<numThreads>(env, "numThreads"));
  exports.Set("wakeUpSeconds", Napi::Function::New<wakeUpSeconds>(env, "wakeUpSeconds"));
  exports.Set(
      "coreRates",
      Napi::Function::New(
          env, [thread](const Napi::CallbackInfo& info) { return startCoreRates(info, *thread); },
          "coreRates"));
  exports.Set("memoryBandwidth", Napi::Function::New(
                                     env,
                                     [thread](const Napi::CallbackInfo& info) {
                                       return startMemoryBandwidth(info, *thread);
                                     },
                                     "memoryBandwidth"));
  exports.Set("estimateCollectives",
              Napi::Function::New<estimateCollectives>(env, "estimateCollectives"));
  exports.Set("timeCollective", Napi::Function::New<timeCollective>(env, "timeCollective"));
  exports.Set("timeBetweenCores", Napi::Function::New<timeBetweenCores>(env, "timeBetweenCores"));
  exports.Set("timeMessages", Napi::Function::New<timeMessages>(env, "timeMessages"));
  exports.Set("fillPattern", Napi::Function::New<fillPattern>(env, "fillPattern"));
  exports.Set("countWrong", Napi::Function::New<countWrong>(env, "countWrong"));
}

}  // namespace gradlink::binding

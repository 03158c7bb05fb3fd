#include "binding/store/dist_open.h"

#include <optional>
#include <utility>

#include "binding/args.h"
#include "binding/communicator/job_join.h"
#include "binding/errors.h"
#include "binding/pending_op.h"
#include "binding/store/args.h"
#include "binding/store/store_wrap.h"
#include "core/wire.h"
#include "core/work_queue.h"
#include "cuda/device.h"
#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/staged/gpu_dist_store.h"
#include "kvstore/worker/dist_store.h"
#include "kvstore/worker/terms.h"
#include "shm/wake_up.h"

namespace gradlink::binding {

namespace {

/// A store that is being opened. Created and destroyed on the JavaScript thread.
class Opening final : public Resident {
 public:
  explicit Opening(Environment& environment) : environment_(environment.shared_from_this()) {
    environment_->add(this);
  }
  ~Opening() override {
    environment_->remove(this);
    queue.drain();
  }
  void abandon() override { cancelled = true; }
  void join() override { queue.drain(); }

 private:
  std::shared_ptr<Environment> environment_;

 public:
  std::atomic<bool> cancelled = false;
  std::unique_ptr<Store> store;
  WorkQueue queue;  // last, so destroyed first
};

std::size_t devicesArg(const Napi::Object& options) {
  return static_cast<std::size_t>(
      integerArg(options.Get("devices"), "devices", 1, kMaxStoreDevices));
}

/// Nothing for CPU devices.
std::optional<GpuDistOptions> gpusOf(const Napi::Object& options) {
  const Napi::Value list = options.Get("gpus");
  if (list.IsNull()) return std::nullopt;
  GpuDistOptions gpus;
  gpus.gpus = gpusArg(list);
  if (gpus.gpus.empty()) throw argumentError(options.Env(), "gpus", "at least one", "none");
  // Report a missing GPU before meeting anybody.
  for (const int gpu : gpus.gpus) cuda::Device::get(gpu);
  gpus.onHost = booleanArg(options.Get("mergeOnHost"), "mergeOnHost");
  gpus.merge = static_cast<GpuMerge>(integerArg(options.Get("merge"), "merge", 0, 2));
  gpus.timeoutMs = numberArg(options.Get("timeoutMs"), "timeoutMs");
  return gpus;
}

}  // namespace

Napi::Promise openStore(
    Napi::Env env, std::function<std::unique_ptr<Store>(const std::atomic<bool>* cancelled)> open,
    std::function<Napi::Value(Napi::Env, std::unique_ptr<Store>)> made) {
  const auto opening = std::make_shared<Opening>(Environment::of(env));
  // The finisher owns it: the queue's thread must not be the last to release it.
  return PendingOp::start(
      env, opening->queue,
      [raw = opening.get(), open = std::move(open)] { raw->store = open(&raw->cancelled); },
      [opening, made = std::move(made)](Napi::Env at) {
        return made(at, std::move(opening->store));
      });
}

Napi::Value KVStoreWrap::openDist(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object from = objectArg(info[1], "options");
    DistStoreOptions options;
    options.workers = static_cast<int>(integerArg(from.Get("workers"), "workers", 1, kMaxRanks));
    options.servers = static_cast<int>(integerArg(from.Get("servers"), "servers", 1, kMaxRanks));
    const std::optional<GpuDistOptions> gpus = gpusOf(from);
    options.devices = gpus ? gpus->innerDevices() : devicesArg(from);
    options.asynchronous = booleanArg(from.Get("asynchronous"), "asynchronous");
    options.bigArrayBound = countArg(from.Get("bigArrayBound"), "bigArrayBound");
    options.timeoutMs = numberArg(from.Get("timeoutMs"), "timeoutMs");
    return openStore(
        env,
        [join = jobJoinArg(info[0]), options, gpus](const std::atomic<bool>* cancelled) {
          const std::unique_ptr<Communicator> rendezvous = join(cancelled);
          DistStoreOptions agreed = agreeOnTerms(*rendezvous, &options);
          std::unique_ptr<Wire> wire = rendezvous->openWire();
          rendezvous->close();
          // Polling saves two wake-ups, of the store's thread and of JavaScript's. Across hosts an
          // answer takes longer than these; if a server needs this core, polling delays it.
          if (wire->ranksHaveCores() && !gpus) {
            agreed.lookNanoseconds = 2 * shm::spinNanoseconds(shm::wakeUp());
          }
          std::unique_ptr<Store> store = makeDistStore(std::move(wire), agreed);
          return gpus ? makeGpuDistStore(std::move(store), *gpus) : std::move(store);
        },
        [kind = gpus ? KVStoreHandle::Kind::distributedGpus : KVStoreHandle::Kind::distributed](
            Napi::Env at, std::unique_ptr<Store> store) {
          return make(at, std::move(store), kind);
        });
  });
}

Napi::Value KVStoreWrap::openAllreduce(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Napi::Object from = objectArg(info[1], "options");
    AllreduceStoreOptions options;
    const std::optional<GpuDistOptions> gpus = gpusOf(from);
    if (!gpus) options.devices = devicesArg(from);
    options.shardOptimizer = booleanArg(from.Get("shardOptimizer"), "shardOptimizer");
    options.timeoutMs = numberArg(from.Get("timeoutMs"), "timeoutMs");
    return openStore(
        env,
        [join = jobJoinArg(info[0]), options, gpus](const std::atomic<bool>* cancelled) {
          return gpus ? makeGpuAllreduceStore(join(cancelled), options, *gpus)
                      : makeAllreduceStore(join(cancelled), options);
        },
        [kind = gpus ? KVStoreHandle::Kind::distributedGpus : KVStoreHandle::Kind::distributed](
            Napi::Env at, std::unique_ptr<Store> store) {
          return make(at, std::move(store), kind);
        });
  });
}

}  // namespace gradlink::binding

// Opening communicators.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/buffer_view.h"
#include "binding/communicator/communicator_wrap.h"
#include "binding/communicator/mpi_join.h"
#include "binding/errors.h"
#include "cuda/ranks/staged_communicator.h"
#include "nccl/nccl.h"
#include "shm/shm.h"

namespace gradlink::binding {

namespace {

shm::JoinOptions joinOptionsArg(const Napi::Value& value) {
  const Napi::Object from = objectArg(value, "options");
  shm::JoinOptions options;
  options.job = stringArg(from.Get("job"), "job");
  options.name = stringArg(from.Get("name"), "name");
  options.size = static_cast<int>(integerArg(from.Get("size"), "size", 1, kMaxRanks));
  options.rank = static_cast<int>(integerArg(from.Get("rank"), "rank", 0, options.size - 1));
  options.timeoutMs = numberArg(from.Get("timeoutMs"), "timeoutMs");
  options.threads = booleanArg(from.Get("threads"), "threads");
  return options;
}

std::unique_ptr<Communicator> joinNow(const shm::JoinOptions& options,
                                      const std::atomic<bool>* cancelled) {
  shm::JoinOptions own = options;
  own.cancelled = cancelled;
  return shm::join(own);
}

nccl::Check checkArg(const Napi::Value& value) {
  const std::string check = stringArg(value, "check");
  if (check == "first") return nccl::Check::first;
  if (check == "never") return nccl::Check::never;
  if (check == "always") return nccl::Check::always;
  throw argumentError(value.Env(), "check", "'always', 'first' or 'never'", check);
}

std::vector<int> gpuListArg(const Napi::Value& value) {
  const BufferView given = viewOf(value, DType::int32, "gpus");
  const auto* first = static_cast<const std::int32_t*>(given.data);
  return {first, first + given.length};
}

/// Joins each rank on a thread and returns when all have met. `gpus`: one for each, or none.
std::vector<std::unique_ptr<Communicator>> joinRanks(const shm::JoinOptions& options,
                                                     const std::vector<int>& gpus) {
  std::vector<std::unique_ptr<Communicator>> ranks(options.size);
  std::vector<std::exception_ptr> errors(options.size);
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  std::atomic<bool> cancelled = false;
  const auto joinOne = [&](int rank) {
    try {
      shm::JoinOptions own = options;
      own.rank = rank;
      own.cancelled = &cancelled;
      ranks[rank] = shm::join(own);
      if (gpus.empty()) return;
      ranks[rank] = nccl::join(std::move(ranks[rank]), gpus[rank],
                               {.timeoutMs = options.timeoutMs, .cancelled = &cancelled});
    } catch (...) {
      errors[rank] = std::current_exception();
    }
  };
  try {
    for (int rank = 0; rank < options.size; ++rank) threads.emplace_back(joinOne, rank);
  } catch (...) {
    // No more threads can start: those that wait must not wait for the missing ranks.
    cancelled = true;
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return ranks;
}

}  // namespace

Napi::Value CommunicatorWrap::local(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    const int size = static_cast<int>(integerArg(info[0], "size", 1, kMaxRanks));
    return make(
        env, std::make_shared<CommunicatorHandle>(Environment::of(env), shm::makeLocalGroup(size)));
  });
}

Napi::Value CommunicatorWrap::connect(Napi::Env env, CommunicatorHandle::Join join) {
  auto handle = std::make_shared<CommunicatorHandle>(Environment::of(env));
  // The finisher owns the handle: the queue's thread must not be the last to release it.
  return PendingOp::start(
      env, handle->queue(), [raw = handle.get(), join = std::move(join)] { raw->connect(join); },
      [handle](Napi::Env at) -> Napi::Value { return make(at, handle); });
}

Napi::Value CommunicatorWrap::join(const Napi::CallbackInfo& info) {
  return connect(info.Env(),
                 [options = joinOptionsArg(info[0])](const std::atomic<bool>* cancelled) {
                   return joinNow(options, cancelled);
                 });
}

Napi::Value CommunicatorWrap::joinAll(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&] {
    shm::JoinOptions options;
    options.size = static_cast<int>(integerArg(info[0], "size", 1, kMaxRanks));
    options.name = stringArg(info[1], "name");
    options.timeoutMs = numberArg(info[2], "timeoutMs");
    options.threads = true;
    const std::vector<int> gpus = info[3].IsNull() ? std::vector<int>{} : gpuListArg(info[3]);
    if (!gpus.empty() && gpus.size() != static_cast<std::size_t>(options.size)) {
      throw Error(ErrorCode::invalidArgument, "gpus: expected one for each rank");
    }
    auto ranks = joinRanks(options, gpus);
    const Napi::Array list = Napi::Array::New(env, ranks.size());
    for (std::uint32_t i = 0; i < ranks.size(); ++i) {
      list.Set(i, make(env, std::make_shared<CommunicatorHandle>(Environment::of(env),
                                                                 std::move(ranks[i]))));
    }
    return list;
  });
}

Napi::Value CommunicatorWrap::openNccl(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const double timeoutMs = numberArg(info[1], "timeoutMs");
  return connect(env, [gpus = gpuListArg(info[0]), timeoutMs](const std::atomic<bool>* cancelled) {
    return nccl::openLocal(gpus, {.timeoutMs = timeoutMs, .cancelled = cancelled});
  });
}

Napi::Value CommunicatorWrap::joinMpi(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    CommunicatorHandle::Join join = mpiJoinArg(info[0]);
    if (info[1].IsNull()) return connect(env, std::move(join));
    std::vector<int> gpus = gpuListArg(info[1]);
    if (info[2].IsNull()) {
      if (gpus.size() != 1) throw Error(ErrorCode::invalidArgument, "gpus: expected one");
      // Report a missing GPU before meeting anybody.
      cuda::Device& device = cuda::Device::get(gpus.front());
      return connect(env, [join = std::move(join), &device](const std::atomic<bool>* cancelled) {
        return cuda::stageThroughHost(join(cancelled), device);
      });
    }
    // Ranks agree over the hosts; their data moves over NCCL.
    const nccl::Check check = checkArg(info[2]);
    return connect(env, [join = std::move(join), gpus = std::move(gpus),
                         check](const std::atomic<bool>* cancelled) {
      std::unique_ptr<Communicator> control = join(cancelled);
      const double timeoutMs = control->timeoutMs();
      return nccl::join(std::move(control), gpus,
                        {.timeoutMs = timeoutMs, .cancelled = cancelled, .check = check});
    });
  });
}

Napi::Value CommunicatorWrap::joinNccl(const Napi::CallbackInfo& info) {
  const nccl::Check check = checkArg(info[2]);
  return connect(info.Env(), [options = joinOptionsArg(info[0]), gpus = gpuListArg(info[1]),
                              check](const std::atomic<bool>* cancelled) {
    // Ranks find each other and agree in host memory: NCCL cannot name a missing rank.
    return nccl::join(joinNow(options, cancelled), gpus,
                      {.timeoutMs = options.timeoutMs, .cancelled = cancelled, .check = check});
  });
}

}  // namespace gradlink::binding

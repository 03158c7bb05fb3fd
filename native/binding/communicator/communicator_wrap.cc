#include "binding/communicator/communicator_wrap.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding/args.h"
#include "binding/communicator/calls.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/external_memory.h"
#include "core/agreement.h"
#include "core/collective.h"

namespace gradlink::binding {

namespace {

constexpr const char* kCommunicatorClass = "NativeCommunicator";

/// The table of core/collective.h in the form of lib/collectives.ts; the row number is the kind.
Napi::Array callTable(Napi::Env env) {
  Napi::Array table = Napi::Array::New(env, kKindCount);
  for (std::uint32_t i = 0; i < table.Length(); ++i) {
    const CollectiveTraits& traits = kCollectives[i];
    Napi::Object row = Napi::Object::New(env);
    row.Set("name", traits.name);
    row.Set("hasOp", Napi::Boolean::New(env, traits.hasOp));
    row.Set("hasRoot", Napi::Boolean::New(env, traits.hasRoot));
    row.Set("in", nameOf(traits.in));
    row.Set("out", nameOf(traits.out));
    table.Set(i, row);
  }
  return table;
}

/// (op, calls): throws the mismatch if ranks made different calls.
Napi::Value checkCalls(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::string op = stringArg(info[0], "op");
    const Napi::Array given = arrayArg(info[1], "calls");
    Calls calls;
    for (std::uint32_t i = 0; i < given.Length(); ++i) {
      const Napi::Object one = objectArg(given[i], "calls");
      const auto rank = static_cast<int>(integerArg(one.Get("rank"), "rank", 0, kMaxRanks));
      calls.add(rank, countArg(one.Get("record"), "record"), stringArg(one.Get("call"), "call"));
    }
    calls.check(op.c_str(), 0);
    return info.Env().Undefined();
  });
}

}  // namespace

void exportCommunicator(Napi::Env env, Napi::Object exports) {
  CommunicatorWrap::define(env, exports);
  exports.Set("calls", callTable(env));
  exports.Set("checkCalls", Napi::Function::New<checkCalls>(env, "checkCalls"));
}

void CommunicatorWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = CommunicatorWrap;
  const Napi::Function constructor =
      DefineClass(env, kCommunicatorClass,
                  {
                      StaticMethod<&Wrap::local>("local"),
                      StaticMethod<&Wrap::join>("join"),
                      StaticMethod<&Wrap::joinAll>("joinAll"),
                      StaticMethod<&Wrap::openNccl>("openNccl"),
                      StaticMethod<&Wrap::joinNccl>("joinNccl"),
                      StaticMethod<&Wrap::joinMpi>("joinMpi"),
                      InstanceAccessor<&Wrap::size>("size"),
                      InstanceAccessor<&Wrap::heldRanks>("heldRanks"),
                      InstanceAccessor<&Wrap::backend>("backend"),
                      InstanceAccessor<&Wrap::gpus>("gpus"),
                      InstanceMethod<&Wrap::run>("run"),
                      InstanceMethod<&Wrap::runSync>("runSync"),
                      InstanceMethod<&Wrap::split>("split"),
                      InstanceMethod<&Wrap::splitHeld>("splitHeld"),
                      InstanceMethod<&Wrap::follow>("follow"),
                      InstanceMethod<&Wrap::allocShared>("allocShared"),
                      InstanceMethod<&Wrap::allocRegistered>("allocRegistered"),
                      InstanceMethod<&Wrap::setFusion>("setFusion"),
                      InstanceMethod<&Wrap::setJoinable>("setJoinable"),
                      InstanceMethod<&Wrap::joinOthers>("joinOthers"),
                      InstanceMethod<&Wrap::cancel>("cancel"),
                      InstanceMethod<&Wrap::abort>("abort"),
                      InstanceMethod<&Wrap::close>("close"),
                  });
  Environment::of(env).setConstructor(kCommunicatorClass, constructor);
  exports.Set(kCommunicatorClass, constructor);
}

Napi::Object CommunicatorWrap::make(Napi::Env env, std::shared_ptr<CommunicatorHandle> handle) {
  return Environment::of(env)
      .constructor(kCommunicatorClass)
      .New({Napi::External<std::shared_ptr<CommunicatorHandle>>::New(env, &handle)});
}

std::shared_ptr<CommunicatorHandle> CommunicatorWrap::unwrap(const Napi::Value& value) {
  const Napi::Env env = value.Env();
  if (!value.IsObject() ||
      !value.As<Napi::Object>().InstanceOf(Environment::of(env).constructor(kCommunicatorClass))) {
    throw argumentError(env, "communicator", "a NativeCommunicator", describe(value));
  }
  std::shared_ptr<CommunicatorHandle> handle = Unwrap(value.As<Napi::Object>())->handle_;
  guarded(env, [&] { handle->open(); });
  return handle;
}

CommunicatorWrap::CommunicatorWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  if (!info[0].IsExternal()) {
    throw argumentError(info.Env(), kCommunicatorClass, "a call of one of its static methods",
                        "new");
  }
  handle_ = *info[0].As<Napi::External<std::shared_ptr<CommunicatorHandle>>>().Data();
}

Napi::Value CommunicatorWrap::size(const Napi::CallbackInfo& info) {
  return guarded(info.Env(),
                 [&] { return Napi::Number::New(info.Env(), handle_->communicator().size()); });
}

Napi::Value CommunicatorWrap::heldRanks(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const auto ranks = handle_->communicator().heldRanks();
    const Napi::Array list = Napi::Array::New(info.Env(), ranks.size());
    for (std::uint32_t i = 0; i < ranks.size(); ++i) list.Set(i, ranks[i]);
    return list;
  });
}

Napi::Value CommunicatorWrap::gpus(const Napi::CallbackInfo& info) {
  const auto gpus = handle_->gpus();
  const Napi::Array list = Napi::Array::New(info.Env(), gpus.size());
  for (std::uint32_t i = 0; i < gpus.size(); ++i) list.Set(i, gpus[i]);
  return list;
}

Napi::Value CommunicatorWrap::backend(const Napi::CallbackInfo& info) {
  return guarded(info.Env(),
                 [&] { return Napi::String::New(info.Env(), handle_->communicator().backend()); });
}

Side CommunicatorWrap::side() { return {handle_->open(), handle_->gpus()}; }

Napi::Value CommunicatorWrap::start(Napi::Env env, const Napi::Value& ticketArg,
                                    std::function<void(Communicator&)> call,
                                    PendingOp::Finish finish, Kept kept) {
  const double number = numberArg(ticketArg, "ticket");
  std::shared_ptr<CallTicket> ticket = handle_->issueTicket(number);
  kept.push_back(Napi::Persistent(Value()));
  CommunicatorHandle* raw = handle_.get();
  PendingOp::Work work;
  if (ticket) {
    work = [raw, ticket, call = std::move(call)] {
      if (!ticket->begin()) throw Error(ErrorCode::aborted, "dropped before it began");
      call(raw->communicator());
    };
  } else {
    work = [raw, call = std::move(call)] { call(raw->communicator()); };
  }
  return PendingOp::start(env, handle_->queue(), std::move(work), std::move(finish),
                          std::move(kept));
}

/// (mostBytes, waitMs); 0 bytes: off.
Napi::Value CommunicatorWrap::setFusion(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::size_t mostBytes = countArg(info[0], "mostBytes");
    const std::chrono::duration<double, std::milli> wait(numberArg(info[1], "waitMs"));
    side();
    handle_->fusion().setLimits(mostBytes,
                                std::chrono::duration_cast<std::chrono::microseconds>(wait));
    return info.Env().Undefined();
  });
}

/// (call, input, output, count, root, timeoutMs, ticket, more, name)
Napi::Value CommunicatorWrap::run(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    Kept kept;
    // Before the call is read, which ends a segment of small sums.
    Fusion& fusion = handle_->fusion();
    const std::size_t segment = fusion.segment();
    const auto call =
        std::make_shared<GivenCall>(GivenArguments{info, info[7], info[8], side(), &kept});
    std::optional<FusedCall> fused;
    if (fusion.isOn() && handle_->gpus().empty()) fused = call->fused();
    if (!fused || !fusion.takes(fused->bytes())) {
      return start(
          env, info[6], [call](Communicator& at) { call->run(at); },
          [call](Napi::Env at) { return call->result(at); }, std::move(kept));
    }
    const std::shared_ptr<CallTicket> ticket = handle_->issueTicket(numberArg(info[6], "ticket"));
    if (ticket) fused->begin = [ticket] { return ticket->begin(); };
    const std::shared_ptr<Fusion::Entry> entry = fusion.add(std::move(*fused), segment);
    kept.push_back(Napi::Persistent(Value()));
    CommunicatorHandle* raw = handle_.get();
    return PendingOp::start(
        env, handle_->queue(), [raw, entry] { raw->fusion().finish(raw->communicator(), *entry); },
        {}, std::move(kept));
  });
}

/// (call, input, output, count, root, timeoutMs, more, name)
Napi::Value CommunicatorWrap::runSync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    // The shortest calls omit both.
    const Napi::Value name = info.Length() > 7 ? info[7] : Napi::Value();
    GivenCall call({info, info[6], name, side(), nullptr});
    handle_->runNow([&call](Communicator& at) { call.run(at); });
    return call.result(info.Env());
  });
}

/// (above). Only the thread of their own calls reads MPI's links, so those ranks follow nobody.
Napi::Value CommunicatorWrap::follow(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::shared_ptr<CommunicatorHandle> above = unwrap(info[0]);
    if (std::string_view(handle_->communicator().backend()) == "shm") {
      handle_->follow(*above);
    }
    return info.Env().Undefined();
  });
}

Napi::Value CommunicatorWrap::allocShared(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::size_t bytes = std::max<std::size_t>(countArg(info[0], "bytes"), 1);
    void* const data = handle_->open().allocShared(bytes);
    std::shared_ptr<void> memory(data,
                                 [from = handle_->share()](void* gone) { from->freeShared(gone); });
    return arrayBufferOver(env, std::move(memory), data, bytes, "allocShared", &handle_->shown());
  });
}

Napi::Value CommunicatorWrap::cancel(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), handle_->cancel(numberArg(info[0], "ticket")));
}

Napi::Value CommunicatorWrap::abort(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    handle_->abort(stringArg(info[0], "reason"));
    return info.Env().Undefined();
  });
}

Napi::Value CommunicatorWrap::close(const Napi::CallbackInfo& info) {
  handle_->markClosed();
  Kept kept;
  kept.push_back(Napi::Persistent(Value()));
  CommunicatorHandle* raw = handle_.get();
  return PendingOp::startLast(
      info.Env(), raw->queue(), [raw] { raw->close(); },
      [raw](Napi::Env at) -> Napi::Value {
        raw->release(at);
        return at.Undefined();
      },
      std::move(kept));
}

}  // namespace gradlink::binding

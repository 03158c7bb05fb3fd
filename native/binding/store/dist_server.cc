#include "binding/store/dist_server.h"

#include <utility>

#include "binding/args.h"
#include "binding/communicator/job_join.h"
#include "binding/errors.h"
#include "binding/exports.h"
#include "binding/pending_op.h"
#include "binding/store/updater_call.h"
#include "kvstore/worker/terms.h"
#include "messages/job_end.h"

namespace gradlink::binding {

namespace {

constexpr const char* kServerClass = "NativeServer";
constexpr int kMaxThreads = 4096;

Napi::Value reportObject(Napi::Env env, const ServerReport& report) {
  const Napi::Object object = Napi::Object::New(env);
  object.Set("server", report.server);
  object.Set("shards", static_cast<double>(report.shards));
  object.Set("elements", static_cast<double>(report.elements));
  object.Set("bytesReceived", static_cast<double>(report.bytesReceived));
  object.Set("bytesSent", static_cast<double>(report.bytesSent));
  object.Set("pipelines", report.pipelines);
  object.Set("merge", report.merge);
  object.Set("update", report.update);
  object.Set("wait", report.wait);
  return object;
}

}  // namespace

ServerHandle::ServerHandle(Napi::Env env, CommunicatorHandle::Join join,
                           const ServerOptions& options, Napi::Function onCommand,
                           Napi::Function updater)
    : environment_(Environment::of(env).shared_from_this()),
      join_(std::move(join)),
      options_(options) {
  if (!onCommand.IsEmpty()) onCommand_ = Napi::Persistent(onCommand);
  options_.trace = &trace_;
  options_.onCommand = [this](int worker, const std::string& command) {
    runCommand(worker, command);
  };
  if (!updater.IsEmpty()) {
    updater_ = Napi::Persistent(updater);
    options_.updater = [this](const ShardUpdate& wanted) { update(wanted); };
  }
  environment_->add(this);
}

ServerHandle::~ServerHandle() {
  environment_->remove(this);
  stop_ = true;
  queue_.drain();
}

void ServerHandle::meet() {
  const std::unique_ptr<Communicator> rendezvous = join_(&stop_);
  const DistStoreOptions terms = agreeOnTerms(*rendezvous, nullptr);
  options_.workers = terms.workers;
  options_.servers = terms.servers;
  options_.asynchronous = terms.asynchronous;
  options_.timeoutMs = terms.timeoutMs;
  wire_ = rendezvous->openWire();
  rendezvous->close();
}

void ServerHandle::waitForExit() { messages::waitForExit(&stop_); }

void ServerHandle::serve() { report_ = gradlink::serve(std::move(wire_), options_, &stop_); }

/// On the receiving thread. The worker's command is done when the function returns; a returned text
/// is the reason of its failure.
void ServerHandle::runCommand(int worker, const std::string& command) {
  std::string failure;
  environment_->call([&](Napi::Env env) {
    if (onCommand_.IsEmpty()) return;
    try {
      const Napi::Value returned =
          onCommand_.Call({Napi::Number::New(env, worker), Napi::String::New(env, command)});
      if (returned.IsString()) failure = returned.As<Napi::String>();
    } catch (const Napi::Error& error) {
      error.ThrowAsJavaScriptException();
    }
  });
  if (!failure.empty()) throw Error(ErrorCode::system, failure).stillUsable();
}

/// On a pipeline's thread, which waits for it.
void ServerHandle::update(const ShardUpdate& wanted) {
  std::string failure;
  const bool ran = environment_->call([&](Napi::Env env) {
    try {
      runUpdater(env, updater_, Napi::String::New(env, wanted.key),
                 {wanted.dtype, wanted.count, wanted.received, wanted.stored},
                 {Napi::Number::New(env, static_cast<double>(wanted.first))});
    } catch (const Napi::Error& error) {
      failure = error.Message();
      if (failure.empty()) failure = "it threw something that is not an error";
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  if (!ran) failure = "the server's process is ending";
  if (failure.empty()) return;
  throw Error(ErrorCode::system, "the updater of a server failed for key " + wanted.key +
                                     ", whose value stays as it was: " + failure)
      .stillUsable();
}

void exportServer(Napi::Env env, Napi::Object exports) { ServerWrap::define(env, exports); }

void ServerWrap::define(Napi::Env env, Napi::Object exports) {
  using Wrap = ServerWrap;
  exports.Set(
      kServerClass,
      DefineClass(
          env, kServerClass,
          {InstanceMethod<&Wrap::meet>("meet"), InstanceMethod<&Wrap::serve>("serve"),
           InstanceMethod<&Wrap::waitForExit>("waitForExit"), InstanceMethod<&Wrap::stop>("stop"),
           InstanceMethod<&Wrap::trace>("trace"), InstanceMethod<&Wrap::takeTrace>("takeTrace")}));
}

ServerWrap::ServerWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  guarded(info.Env(), [&] {
    const Napi::Object from = objectArg(info[1], "options");
    ServerOptions options;
    options.threads = static_cast<int>(integerArg(from.Get("threads"), "threads", 0, kMaxThreads));
    options.tolerateWorkerLoss = booleanArg(from.Get("tolerateWorkerLoss"), "tolerateWorkerLoss");
    const Napi::Function onCommand =
        info[2].IsNull() ? Napi::Function() : functionArg(info[2], "onCommand");
    const Napi::Function updater =
        info[3].IsNull() ? Napi::Function() : functionArg(info[3], "updater");
    handle_ = std::make_shared<ServerHandle>(info.Env(), jobJoinArg(info[0]), options, onCommand,
                                             updater);
  });
}

Napi::Value ServerWrap::meet(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    if (called_ != 0) throw argumentError(env, kServerClass, "meet() once", "another");
    called_ = 1;
    return PendingOp::start(
        env, handle_->queue(), [raw = handle_.get()] { raw->meet(); },
        [handle = handle_](Napi::Env at) { return at.Undefined(); });
  });
}

Napi::Value ServerWrap::serve(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    // Only after meet() has resolved: lib/kvstore/serve.ts awaits it.
    if (called_ != 1)
      throw argumentError(env, kServerClass, "serve() once, after meet()", "another");
    called_ = 2;
    return PendingOp::startLast(
        env, handle_->queue(), [raw = handle_.get()] { raw->serve(); },
        [handle = handle_](Napi::Env at) -> Napi::Value {
          return reportObject(at, handle->report());
        });
  });
}

Napi::Value ServerWrap::waitForExit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    if (called_ != 0) throw argumentError(env, kServerClass, "waitForExit() alone", "another call");
    called_ = 2;
    return PendingOp::startLast(
        env, handle_->queue(), [raw = handle_.get()] { raw->waitForExit(); },
        [handle = handle_](Napi::Env at) { return at.Undefined(); });
  });
}

Napi::Value ServerWrap::stop(const Napi::CallbackInfo& info) {
  handle_->stop();
  return info.Env().Undefined();
}

}  // namespace gradlink::binding

// NativeServer: one server's part in a distributed store.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "binding/communicator/handle.h"
#include "binding/environment.h"
#include "binding/napi_setup.h"
#include "core/wire.h"
#include "core/work_queue.h"
#include "kvstore/server/server.h"

namespace gradlink::binding {

/// Outlives its JavaScript object while it serves. Created and destroyed on the JavaScript thread.
class ServerHandle final : public Resident, public std::enable_shared_from_this<ServerHandle> {
 public:
  /// Both functions may be empty.
  ServerHandle(Napi::Env, CommunicatorHandle::Join, const ServerOptions&, Napi::Function onCommand,
               Napi::Function updater);
  ~ServerHandle() override;

  /// For MPI jobs: returns when the workers are exiting. On the queue's thread.
  void waitForExit();
  // ---- on the queue's thread, once, in this order
  void meet();
  void serve();

  WorkQueue& queue() { return queue_; }
  const ServerReport& report() const { return report_; }
  ServerTrace& trace() { return trace_; }
  /// Ends meet() and serve() soon. Thread-safe.
  void stop() { stop_ = true; }

  void abandon() override { stop_ = true; }
  void join() override { queue_.drain(); }

 private:
  void runCommand(int worker, const std::string& command);
  void update(const ShardUpdate&);

  std::shared_ptr<Environment> environment_;
  const CommunicatorHandle::Join join_;
  ServerTrace trace_;
  ServerOptions options_;
  Napi::FunctionReference onCommand_;
  Napi::FunctionReference updater_;
  std::unique_ptr<Wire> wire_;
  ServerReport report_;
  std::atomic<bool> stop_ = false;
  WorkQueue queue_;  // last, so destroyed first: its thread uses the rest
};

class ServerWrap : public Napi::ObjectWrap<ServerWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  explicit ServerWrap(const Napi::CallbackInfo&);

 private:
  Napi::Value meet(const Napi::CallbackInfo&);
  Napi::Value serve(const Napi::CallbackInfo&);
  Napi::Value waitForExit(const Napi::CallbackInfo&);
  Napi::Value stop(const Napi::CallbackInfo&);
  // ---- server_trace.cc
  Napi::Value trace(const Napi::CallbackInfo&);
  Napi::Value takeTrace(const Napi::CallbackInfo&);

  std::shared_ptr<ServerHandle> handle_;
  int called_ = 0;
};

}  // namespace gradlink::binding

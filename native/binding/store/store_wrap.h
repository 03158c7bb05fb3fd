// The JavaScript class NativeKVStore.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "binding/store/handle.h"
#include "kvstore/store.h"

namespace gradlink::binding {

class KVStoreWrap : public Napi::ObjectWrap<KVStoreWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);
  explicit KVStoreWrap(const Napi::CallbackInfo&);

 private:
  static Napi::Value make(Napi::Env, std::unique_ptr<Store>, KVStoreHandle::Kind);
  static Napi::Value onGpus(const Napi::CallbackInfo&);
  static Napi::Value openDist(const Napi::CallbackInfo&);
  static Napi::Value openAllreduce(const Napi::CallbackInfo&);
  Napi::Value defineKey(const Napi::CallbackInfo&);
  Napi::Value submit(const Napi::CallbackInfo&);
  Napi::Value prepare(const Napi::CallbackInfo&);
  Napi::Value submitPrepared(const Napi::CallbackInfo&);
  Napi::Value rowSparsePull(const Napi::CallbackInfo&);
  Napi::Value pushRows(const Napi::CallbackInfo&);
  Napi::Value setOptimizer(const Napi::CallbackInfo&);
  Napi::Value setLearningRate(const Napi::CallbackInfo&);
  Napi::Value setUpdater(const Napi::CallbackInfo&);
  Napi::Value setCompression(const Napi::CallbackInfo&);
  Napi::Value barrier(const Napi::CallbackInfo&);
  Napi::Value saveStates(const Napi::CallbackInfo&);
  Napi::Value loadStates(const Napi::CallbackInfo&);
  Napi::Value close(const Napi::CallbackInfo&);

  // ---- dist_calls.cc
  Napi::Value allocShared(const Napi::CallbackInfo&);
  Napi::Value leave(const Napi::CallbackInfo&);
  Napi::Value command(const Napi::CallbackInfo&);
  Napi::Value deadNodes(const Napi::CallbackInfo&);
  Napi::Value placement(const Napi::CallbackInfo&);
  Napi::Value look(const Napi::CallbackInfo&);
  Napi::Value workerReport(const Napi::CallbackInfo&);
  Napi::Value serverReports(const Napi::CallbackInfo&);
  Napi::Value drop(const Napi::CallbackInfo&);

  /// Calls `begin` with a ticket. Returns a promise, or undefined if all was done before begin
  /// returned. `keepMore` adds values to keep until then, `finish` provides the promise's value.
  Napi::Value await(const Napi::CallbackInfo&, const std::function<void(Kept&)>& keepMore,
                    const std::function<void(std::shared_ptr<Ticket>)>& begin,
                    PendingOp::Finish finish = {});
  Napi::Value await(const Napi::CallbackInfo&, const std::function<void(Kept&)>& keepMore,
                    std::vector<Operation> operations, bool here);

  std::shared_ptr<KVStoreHandle> handle_;
};

}  // namespace gradlink::binding

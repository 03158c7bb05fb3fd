// A store, its JavaScript functions, and its cleanup when its environment ends.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "binding/environment.h"
#include "binding/napi_setup.h"
#include "core/work_queue.h"
#include "kvstore/store.h"

namespace gradlink::binding {

/// What the binding needs to check buffers of a key.
struct KeyShape {
  DType dtype;
  std::size_t count;
  std::size_t rowLength;
};

/// Created and destroyed on the JavaScript thread. Pending operations keep its owner.
class KVStoreHandle final : public Resident {
 public:
  enum class Kind : std::uint8_t {
    host,         // its arrays are TypedArrays
    gpus,         // its arrays are DeviceBuffers
    distributed,  // its arrays are TypedArrays, and it waits for other processes
    distributedGpus,
  };

  KVStoreHandle(Napi::Env, std::unique_ptr<Store>, Kind);
  ~KVStoreHandle() override;

  /// Throws ERR_CLOSED after close().
  Store& open();
  /// For objects that outlive close(). Call after open().
  std::shared_ptr<Store> share() { return store_; }
  /// Nothing may be pending. Idempotent.
  void close();

  /// The part of close() that waits for other processes; on the queue's thread.
  void stop() { store_->stop(); }
  WorkQueue& queue() { return queue_; }
  /// If the environment ends without close(), other processes see a death.
  void drop() { dropped_ = true; }

  bool onGpus() const { return kind_ == Kind::gpus || kind_ == Kind::distributedGpus; }
  bool waitsForOthers() const {
    return kind_ == Kind::distributed || kind_ == Kind::distributedGpus;
  }

  KeyId define(const std::string& name, const KeyShape&);
  /// Throws a TypeError for an unknown key.
  const KeyShape& shapeOf(KeyId) const;

  /// An updater that calls this as (key id, received, stored) and takes the value in `stored`.
  std::shared_ptr<ExternalUpdater> updater(Napi::Function);

  void abandon() override {}
  void join() override;

 private:
  class ScriptUpdater;
  void callUpdater(Napi::Env, std::uint32_t function, const UpdateRequest&);

  std::shared_ptr<Environment> environment_;
  Napi::Env env_;
  const Kind kind_;
  std::unordered_map<KeyId, KeyShape> shapes_;
  /// Never shrinks before the end: queued operations still call earlier updaters.
  std::unordered_map<std::uint32_t, Napi::FunctionReference> functions_;
  std::int64_t accountedBytes_ = 0;
  bool closed_ = false;
  bool dropped_ = false;
  std::shared_ptr<Store> store_;  // its threads use the rest
  WorkQueue queue_;               // last, so destroyed first: its thread uses the store
};

}  // namespace gradlink::binding

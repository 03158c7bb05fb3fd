// NativeStoreCall: operations on GPU arrays that are read once and submitted repeatedly. Reading
// six hundred arrays takes longer than a GPU takes to sum them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "binding/gpu/buffer.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "binding/store/handle.h"
#include "kvstore/store.h"

namespace gradlink::binding {

class StoreCallWrap : public Napi::ObjectWrap<StoreCallWrap> {
 public:
  static void define(Napi::Env);
  /// `lists`: lists (of lists) of the NativeDeviceBuffers of the operations; must not change.
  static Napi::Object make(Napi::Env, const std::shared_ptr<KVStoreHandle>&,
                           std::unique_ptr<PreparedCall> operations,
                           const std::vector<Napi::Value>& lists);
  /// Throws a TypeError for other values and for a call of another store.
  static StoreCallWrap& of(const Napi::Value&, const std::shared_ptr<KVStoreHandle>&);

  explicit StoreCallWrap(const Napi::CallbackInfo&);

  /// Keeps all arrays' memory beyond a dispose(). Throws a TypeError if one is disposed.
  std::shared_ptr<void> hold();
  void submit(std::int32_t priority, const std::shared_ptr<Ticket>& ticket) const {
    operations_->submit(priority, ticket);
  }

 private:
  struct Made;

  std::weak_ptr<KVStoreHandle> store_;
  std::unique_ptr<PreparedCall> operations_;
  std::vector<Napi::ObjectReference> lists_;
  std::optional<HeldBuffers> buffers_;  // valid as long as the lists
};

}  // namespace gradlink::binding

// The JavaScript class NativeStoreCall: operations on arrays of GPUs that were read once and are
// submitted again and again. Reading six hundred arrays takes longer than a GPU takes to sum them.
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
  /// `lists`: lists (of lists) of the NativeDeviceBuffers of the operations, which nobody changes.
  static Napi::Object make(Napi::Env, const std::shared_ptr<KVStoreHandle>&,
                           std::unique_ptr<PreparedCall> operations,
                           const std::vector<Napi::Value>& lists);
  /// Throws a TypeError for anything but a call that was made for this store.
  static StoreCallWrap& of(const Napi::Value&, const std::shared_ptr<KVStoreHandle>&);

  explicit StoreCallWrap(const Napi::CallbackInfo&);

  /// The memory of all arrays, beyond a dispose(). Throws a TypeError where one was disposed of.
  std::shared_ptr<void> hold();
  void submit(std::int32_t priority, const std::shared_ptr<Ticket>& ticket) const {
    operations_->submit(priority, ticket);
  }

 private:
  struct Made;

  std::weak_ptr<KVStoreHandle> store_;
  std::unique_ptr<PreparedCall> operations_;
  std::vector<Napi::ObjectReference> lists_;
  std::optional<HeldBuffers> buffers_;  // which live as long as the lists do
};

}  // namespace gradlink::binding

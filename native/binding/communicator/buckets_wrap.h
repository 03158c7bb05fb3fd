// NativeBuckets: gradients gathered in buckets on the JavaScript thread and reduced on the
// communicator's, which starts a bucket during the call that completes it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "binding/communicator/handle.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "train/gradient_buckets.h"

namespace gradlink::binding {

class BucketsWrap final : public Napi::ObjectWrap<BucketsWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);

  /// (communicator, arrays, slots, op, hook, timeoutMs)
  explicit BucketsWrap(const Napi::CallbackInfo&);

 private:
  Napi::Value begin(const Napi::CallbackInfo&);
  Napi::Value add(const Napi::CallbackInfo&);
  Napi::Value flush(const Napi::CallbackInfo&);
  Napi::Value wait(const Napi::CallbackInfo&);
  Napi::Value waitSync(const Napi::CallbackInfo&);

  void handOver(Napi::Env, GradientBuckets::Range);
  static Napi::Value toArray(Napi::Env, const std::vector<GradientBuckets::Times>&);

  std::shared_ptr<CommunicatorHandle> handle_;
  Kept arrays_;
  std::unique_ptr<GradientBuckets> buckets_;
  struct Scratch;
  /// Null if the hook needs none.
  std::shared_ptr<Scratch> scratch_;
  CallOptions options_;
  /// Whether a rank may get only its part of each bucket.
  bool evenParts_ = false;
  /// Ranges handed over and not done yet.
  std::atomic<int> underWay_ = 0;
};

}  // namespace gradlink::binding

// NativeOptimizer: an optimizer that updates the caller's arrays, without a store.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "binding/napi_setup.h"
#include "kvstore/optimizer/optimizer.h"

namespace gradlink::binding {

class OptimizerWrap : public Napi::ObjectWrap<OptimizerWrap> {
 public:
  static void define(Napi::Env, Napi::Object exports);

  explicit OptimizerWrap(const Napi::CallbackInfo&);

 private:
  Napi::Value update(const Napi::CallbackInfo&);
  Napi::Value learningRate(const Napi::CallbackInfo&);
  Napi::Value setLearningRate(const Napi::CallbackInfo&);
  Napi::Value setRescaleGrad(const Napi::CallbackInfo&);
  Napi::Value numUpdate(const Napi::CallbackInfo&);
  Napi::Value saveStates(const Napi::CallbackInfo&);
  Napi::Value loadStates(const Napi::CallbackInfo&);

  std::unique_ptr<Optimizer> optimizer_;
  std::map<std::string, std::unique_ptr<OptimizerState>> states_;
};

}  // namespace gradlink::binding

// The addon's entry point, called for each environment (main thread or worker) that loads it.
#include "binding/args.h"
#include "binding/environment.h"
#include "binding/exports.h"
#include "binding/napi_setup.h"

namespace gradlink::binding {
namespace {

Napi::Value setErrorClass(const Napi::CallbackInfo& info) {
  Environment::of(info.Env()).setErrorClass(functionArg(info[0], "errorClass"));
  return info.Env().Undefined();
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  Environment::install(env);
  exports.Set("setErrorClass", Napi::Function::New<setErrorClass>(env, "setErrorClass"));
  exportBuckets(env, exports);
  exportCommunicator(env, exports);
  exportGpu(env, exports);
  exportKVStore(env, exports);
  exportMeasure(env, exports);
  exportMpi(env, exports);
  exportOptimizer(env, exports);
  exportServer(env, exports);
  exportWindow(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(gradlink, init)

}  // namespace gradlink::binding

// A server's trace for JavaScript.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "binding/args.h"
#include "binding/errors.h"
#include "binding/store/dist_server.h"

namespace gradlink::binding {

namespace {

/// Numbers of each event: lib/native/dist.ts names them.
constexpr std::size_t kFields = 8;

Napi::Array textsOf(Napi::Env env, const std::vector<std::string>& texts) {
  const Napi::Array list = Napi::Array::New(env, texts.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) list.Set(i, texts[i]);
  return list;
}

}  // namespace

Napi::Value ServerWrap::trace(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    if (booleanArg(info[0], "on")) {
      handle_->trace().start();
    } else {
      handle_->trace().stop();
    }
    return info.Env().Undefined();
  });
}

Napi::Value ServerWrap::takeTrace(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const ServerTrace::Taken taken = handle_->trace().take();
    auto events = Napi::Float64Array::New(env, taken.events.size() * kFields);
    double* at = events.Data();
    for (const ServerTrace::Event& event : taken.events) {
      const bool hasKey = event.key != ServerTrace::kNoKey;
      *at++ = event.name;
      *at++ = event.lane;
      *at++ = hasKey ? static_cast<double>(event.key) : -1;
      *at++ = event.worker;
      *at++ = event.pushes;
      *at++ = static_cast<double>(event.bytes);
      *at++ = event.begin;
      *at++ = event.end;
    }
    const Napi::Object object = Napi::Object::New(env);
    object.Set("events", events);
    object.Set("names", textsOf(env, ServerTrace::names()));
    object.Set("keys", textsOf(env, taken.keys));
    object.Set("lost", static_cast<double>(taken.lost));
    object.Set("pipelines", taken.pipelines);
    return object;
  });
}

}  // namespace gradlink::binding

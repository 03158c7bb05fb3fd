// Native errors as JavaScript sees them.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "binding/napi_setup.h"
#include "core/error.h"

namespace gradlink::binding {

/// gradlink::Error becomes a GradlinkError (misuse: a TypeError with a code); a Napi::Error stays
/// what it is; anything else becomes a GradlinkError of code ERR_INTERNAL.
Napi::Value toJavaScript(Napi::Env, const std::exception_ptr&);

/// A TypeError with `code`, in the one formula of argument errors: "expected EXPECTED for NAME, got
/// GOT".
Napi::Error argumentError(Napi::Env, const std::string& name, const std::string& expected,
                          const std::string& got);

/// Runs a method's body; what it throws becomes a JavaScript exception.
template <typename Body>
auto guarded(Napi::Env env, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    throw Napi::Error(env, toJavaScript(env, std::current_exception()));
  }
}

}  // namespace gradlink::binding

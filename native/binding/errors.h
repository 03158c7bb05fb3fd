// Native errors as JavaScript sees them.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "binding/napi_setup.h"
#include "core/error.h"

namespace gradlink::binding {

/// gradlink::Error becomes a GradlinkError (misuse: a TypeError with a code); a Napi::Error is
/// kept; others become a GradlinkError with ERR_INTERNAL.
Napi::Value toJavaScript(Napi::Env, const std::exception_ptr&);

/// A TypeError with `code` and the text "expected EXPECTED for NAME, got GOT".
Napi::Error argumentError(Napi::Env, const std::string& name, const std::string& expected,
                          const std::string& got);

/// Runs a method's body and converts its exceptions to JavaScript's.
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

#include "binding/errors.h"

#include <new>
#include <string>
#include <system_error>

#include "binding/environment.h"

namespace gradlink::binding {

namespace {

Napi::Value makeError(Napi::Env env, const std::string& code, const std::string& message,
                      const Error* details) {
  Napi::Object fields = Napi::Object::New(env);
  if (details != nullptr) {
    if (details->rank >= 0) fields.Set("rank", details->rank);
    if (!details->op.empty()) fields.Set("op", details->op);
    fields.Set("usable", details->usable);
  }
  Napi::FunctionReference& errorClass = Environment::of(env).errorClass();
  if (errorClass.IsEmpty()) {
    // Only for code that loads the addon without lib/native/load.ts.
    Napi::Error plain = Napi::Error::New(env, message);
    plain.Set("code", Napi::String::New(env, code));
    return plain.Value();
  }
  return errorClass.New({Napi::String::New(env, code), Napi::String::New(env, message), fields});
}

}  // namespace

Napi::Value toJavaScript(Napi::Env env, const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Napi::Error& error) {
    return error.Value();
  } catch (const Error& error) {
    if (error.code != ErrorCode::invalidArgument) {
      return makeError(env, nameOf(error.code), error.what(), &error);
    }
    Napi::TypeError misuse = Napi::TypeError::New(env, error.what());
    misuse.Set("code", Napi::String::New(env, nameOf(error.code)));
    return misuse.Value();
  } catch (const std::system_error& error) {
    // Thrown by std::thread if the system has no more threads.
    return makeError(env, nameOf(ErrorCode::system), error.what(), nullptr);
  } catch (const std::bad_alloc&) {
    return makeError(env, nameOf(ErrorCode::outOfMemory), "out of memory", nullptr);
  } catch (const std::exception& error) {
    return makeError(env, "ERR_INTERNAL", error.what(), nullptr);
  } catch (...) {
    return makeError(env, "ERR_INTERNAL", "an unknown native exception", nullptr);
  }
}

Napi::Error argumentError(Napi::Env env, const std::string& name, const std::string& expected,
                          const std::string& got) {
  Napi::TypeError error =
      Napi::TypeError::New(env, "expected " + expected + " for " + name + ", got " + got);
  error.Set("code", Napi::String::New(env, "ERR_INVALID_ARG_VALUE"));
  return error;
}

}  // namespace gradlink::binding

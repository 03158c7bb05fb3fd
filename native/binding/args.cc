#include "binding/args.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "binding/errors.h"

namespace gradlink::binding {

namespace {

std::string textOf(double number) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << number;
  return text.str();
}

}  // namespace

std::string describe(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined:
      return "undefined";
    case napi_null:
      return "null";
    case napi_boolean:
      return value.As<Napi::Boolean>().Value() ? "true" : "false";
    case napi_number:
      return "the number " + textOf(value.As<Napi::Number>().DoubleValue());
    case napi_string:
      return "the string '" + value.As<Napi::String>().Utf8Value() + "'";
    case napi_bigint:
      return "a bigint";
    case napi_function:
      return "a function";
    default:
      return "an object";
  }
}

double numberArg(const Napi::Value& value, const char* name) {
  if (!value.IsNumber()) throw argumentError(value.Env(), name, "a number", describe(value));
  return value.As<Napi::Number>().DoubleValue();
}

std::int64_t integerArg(const Napi::Value& value, const char* name, std::int64_t low,
                        std::int64_t high) {
  if (value.IsNumber()) {
    const double number = value.As<Napi::Number>().DoubleValue();
    // Compare first: a double out of range has no integer to convert to.
    if (number >= static_cast<double>(low) && number <= static_cast<double>(high) &&
        number == std::floor(number)) {
      return static_cast<std::int64_t>(number);
    }
  }
  throw argumentError(value.Env(), name,
                      "an integer from " + std::to_string(low) + " to " + std::to_string(high),
                      describe(value));
}

std::size_t countArg(const Napi::Value& value, const char* name) {
  constexpr std::int64_t kMaxSafeInteger = (std::int64_t{1} << 53) - 1;
  return static_cast<std::size_t>(integerArg(value, name, 0, kMaxSafeInteger));
}

bool booleanArg(const Napi::Value& value, const char* name) {
  if (!value.IsBoolean()) throw argumentError(value.Env(), name, "a boolean", describe(value));
  return value.As<Napi::Boolean>().Value();
}

std::string stringArg(const Napi::Value& value, const char* name) {
  if (!value.IsString()) throw argumentError(value.Env(), name, "a string", describe(value));
  return value.As<Napi::String>().Utf8Value();
}

Napi::Object objectArg(const Napi::Value& value, const char* name) {
  if (!value.IsObject()) throw argumentError(value.Env(), name, "an object", describe(value));
  return value.As<Napi::Object>();
}

Napi::Function functionArg(const Napi::Value& value, const char* name) {
  if (!value.IsFunction()) throw argumentError(value.Env(), name, "a function", describe(value));
  return value.As<Napi::Function>();
}

Napi::Array arrayArg(const Napi::Value& value, const char* name) {
  if (!value.IsArray()) throw argumentError(value.Env(), name, "an array", describe(value));
  return value.As<Napi::Array>();
}

}  // namespace gradlink::binding

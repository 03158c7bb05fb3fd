// Reading call arguments. These checks keep memory safe when TypeScript's checks are bypassed.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "binding/napi_setup.h"

namespace gradlink::binding {

inline constexpr int kMaxInt = std::numeric_limits<int>::max();
/// A limit far above any job or machine (where a rank may be a thread).
inline constexpr int kMaxRanks = 1 << 16;

/// Describes a value for messages: "undefined", "a string", "the number 3.5".
std::string describe(const Napi::Value&);

double numberArg(const Napi::Value&, const char* name);
std::int64_t integerArg(const Napi::Value&, const char* name, std::int64_t low, std::int64_t high);
/// An integer of at least 0 and at most 2^53 - 1.
std::size_t countArg(const Napi::Value&, const char* name);
bool booleanArg(const Napi::Value&, const char* name);
std::string stringArg(const Napi::Value&, const char* name);
Napi::Object objectArg(const Napi::Value&, const char* name);
Napi::Function functionArg(const Napi::Value&, const char* name);
Napi::Array arrayArg(const Napi::Value&, const char* name);

}  // namespace gradlink::binding

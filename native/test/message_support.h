// What tests ask of errors: the words may change, the codes, names and numbers may not.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace gradlink::test {

/// What body throws; nothing where it throws nothing.
template <class Body>
std::optional<Error> errorOf(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return {};
}
template <class Body>
std::optional<ErrorCode> codeOf(const Body& body) {
  const std::optional<Error> error = errorOf(body);
  return error ? std::optional(error->code) : std::nullopt;
}

/// The first of these that the message lacks; "" when it has all of them.
inline std::string lacking(std::string_view message,
                           std::initializer_list<std::string_view> tokens) {
  for (const std::string_view token : tokens) {
    if (message.find(token) == std::string_view::npos) return std::string(token);
  }
  return {};
}

}  // namespace gradlink::test

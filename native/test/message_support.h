// What tests ask of messages: their words may change, the names and numbers in them may not.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace gradlink::test {

/// The first of these that the message lacks; "" when it has all of them.
inline std::string lacking(std::string_view message,
                           std::initializer_list<std::string_view> tokens) {
  for (const std::string_view token : tokens) {
    if (message.find(token) == std::string_view::npos) return std::string(token);
  }
  return {};
}

}  // namespace gradlink::test

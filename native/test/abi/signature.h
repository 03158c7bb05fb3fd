// Prototypes as text: what a caller and a library must agree on, whatever the types are called.
//
// "i4(p,u8,s16)": a signed integer of 4 bytes, of a pointer, an unsigned integer of 8 bytes and a
// structure of 16 by value. An enumeration counts as int.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace gradlink::test {

template <class T>
constexpr std::string typeText() {
  const std::string size = [] {
    std::string digits;
    for (std::size_t rest = sizeof(T); rest > 0; rest /= 10) {
      digits.insert(digits.begin(), static_cast<char>('0' + rest % 10));
    }
    return digits;
  }();
  if constexpr (std::is_pointer_v<T>) return "p";
  if constexpr (std::is_enum_v<T>) return "i" + size;
  if constexpr (std::is_floating_point_v<T>) return "f" + size;
  if constexpr (std::is_integral_v<T>) return (std::is_signed_v<T> ? "i" : "u") + size;
  return "s" + size;
}

template <class Function>
struct Signature;

template <class Result, class... Parameters>
struct Signature<Result (*)(Parameters...)> {
  static constexpr std::string text() {
    std::string all = typeText<Result>() + "(";
    ((all += typeText<Parameters>(), all += ','), ...);
    if (sizeof...(Parameters) > 0) all.pop_back();
    return all + ")";
  }
};

/// A line of a table that scripts/record-abi.mjs writes.
struct RecordedFunction {
  std::string_view name;
  std::string_view signature;
  /// The first of the versions it was looked for in that has it.
  std::string_view since;
};

struct RecordedNumber {
  std::string_view name;
  long long value;
  std::string_view since;
};

template <std::size_t count>
constexpr std::string_view signatureOf(const RecordedFunction (&table)[count],
                                       std::string_view name) {
  for (const RecordedFunction& one : table) {
    if (one.name == name) return one.signature;
  }
  return "not recorded";
}

template <std::size_t count>
constexpr long long numberOf(const RecordedNumber (&table)[count], std::string_view name) {
  for (const RecordedNumber& one : table) {
    if (one.name == name) return one.value;
  }
  return -0x7fffffff;
}

/// Compared at compile time: the type of a function, and a number, with what a table recorded.
#define GRADLINK_SAME_AS(table, name, ...)                                            \
  static_assert(Signature<decltype(__VA_ARGS__)>::text() == signatureOf(table, name), \
                "the prototype of " name);
#define GRADLINK_IS_IN(table, name, ours) \
  static_assert(numberOf(table, name) == static_cast<long long>(ours))

}  // namespace gradlink::test

// Constant-time comparison of authentication tags.
#pragma once

#include <cstddef>
#include <span>

namespace gradlink {

/// Compares contiguous ranges in a time that does not depend on where they differ.
template <class A, class B>
bool sameBytes(const A& one, const B& other) {
  const std::span<const std::byte> a = std::as_bytes(std::span(one));
  const std::span<const std::byte> b = std::as_bytes(std::span(other));
  if (a.size() != b.size()) return false;
  std::byte different{};
  for (std::size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == std::byte{};
}

}  // namespace gradlink

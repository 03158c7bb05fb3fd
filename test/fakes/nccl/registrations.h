// Memory that communicators know ahead of its use, and what their users do wrong with it: none of
// that is an error of the library, which trusts them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gradlink::fake {

/// Of this process, to tests.
enum class RegistrationCount : int {
  /// So far.
  local,
  windows,
  /// Now.
  live,
  /// Collectives of rank 0 whose arrays were all in windows.
  symmetric,
};
std::size_t registrationCount(RegistrationCount which);
void countSymmetric();

/// Notes a misuse, which is reported with what the process left.
void misused(const std::string& text);
std::vector<std::string> misuses();

/// Memory is about to be freed: a misuse where a communicator still knows some of it.
void freeing(const void* memory);

}  // namespace gradlink::fake

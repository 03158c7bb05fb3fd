// What a call throws.
#pragma once

#include <gtest/gtest.h>

#include "test/message_support.h"

namespace gradlink::test {

/// Checks the code of what `body` throws and gives its message; "" when nothing was thrown.
template <class Body>
std::string messageOf(ErrorCode code, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_STREQ(nameOf(error.code), nameOf(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected " << nameOf(code) << ", nothing was thrown";
  return "";
}

/// That of a mistake of the caller, after which everything goes on.
template <class Body>
void expectMisuse(const Body& body) {
  const std::optional<Error> error = errorOf(body);
  ASSERT_TRUE(error) << "it was not refused";
  EXPECT_EQ(error->code, ErrorCode::invalidArgument) << error->what();
  EXPECT_TRUE(error->usable) << error->what();
}

}  // namespace gradlink::test

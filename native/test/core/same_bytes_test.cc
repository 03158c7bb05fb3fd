#include "core/memory/same_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradlink {
namespace {

TEST(SameBytes, AreTheSameOnlyWhole) {
  const std::array<std::uint8_t, 5> digest{0, 1, 127, 128, 255};
  std::string same(reinterpret_cast<const char*>(digest.data()), digest.size());
  EXPECT_TRUE(sameBytes(digest, digest));
  EXPECT_TRUE(sameBytes(digest, std::string_view(same)));
  for (char& byte : same) {
    for (int bit = 1; bit < 256; bit *= 2) {
      byte = static_cast<char>(byte ^ bit);
      EXPECT_FALSE(sameBytes(digest, std::string_view(same)));
      byte = static_cast<char>(byte ^ bit);
    }
  }
  EXPECT_FALSE(sameBytes(digest, std::string_view(same).substr(1)));
  EXPECT_FALSE(sameBytes(digest, std::string_view(same).substr(0, 4)));
  EXPECT_FALSE(sameBytes(digest, std::string_view()));
  EXPECT_TRUE(sameBytes(std::string_view(), std::string_view()));
}

}  // namespace
}  // namespace gradlink

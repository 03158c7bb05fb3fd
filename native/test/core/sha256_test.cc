// SHA-256 and HMAC against the published test vectors (FIPS 180-4's examples, RFC 4231).
#include "core/sha256.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/memory/same_bytes.h"

namespace gradlink {
namespace {

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(toHex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(toHex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(toHex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(toHex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowItsInputIsCut) {
  for (std::size_t length : {55u, 56u, 63u, 64u, 65u, 119u, 120u, 128u, 200u}) {
    const std::string text(length, 'x');
    const std::string whole = toHex(sha256(text));
    for (std::size_t cut = 0; cut <= length; ++cut) {
      EXPECT_EQ(toHex(Sha256().update(text.substr(0, cut)).update(text.substr(cut)).finish()),
                whole);
    }
  }
}

TEST(HmacSha256, IsThatOfTheStandard) {
  EXPECT_EQ(toHex(hmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(toHex(hmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(toHex(hmacSha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  // A key longer than a block.
  EXPECT_EQ(toHex(hmacSha256(std::string(131, '\xaa'),
                             "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

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

// Poly1305 against RFC 8439 (section 2.5.2 and appendix A.3), and against what OpenSSL says of
// other lengths.
#include "messages/tcp/poly1305.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace gradlink::messages::tcp {
namespace {

using Block = Poly1305::Block;

Block blockOf(std::string_view hex) {
  Block block{};
  for (std::size_t i = 0; i < hex.size() / 2; ++i)
    block[i] = static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, 16));
  return block;
}

TEST(Poly1305, IsThatOfTheStandard) {
  const std::string text = "Cryptographic Forum Research Group";
  EXPECT_EQ(Poly1305(blockOf("85d6be7857556d337f4452fe42d506a8"),
                     blockOf("0103808afb0db2fd4abff6af4149f51b"))
                .update(text.data(), text.size())
                .finish(),
            blockOf("a8061dc1305136c6c22b8baf0c0127a9"));
}

/// Sums at the ends of the numbers.
TEST(Poly1305, CarriesAsTheStandardDoes) {
  const Block ones = blockOf("ffffffffffffffffffffffffffffffff");
  const auto of = [](int multiplier, const Block& summand, const std::vector<Block>& data) {
    return Poly1305(Block{static_cast<std::uint8_t>(multiplier)}, summand)
        .update(data.data(), data.size() * sizeof(Block))
        .finish();
  };
  EXPECT_EQ(of(2, {}, {ones}), blockOf("03"));
  EXPECT_EQ(of(2, ones, {blockOf("02")}), blockOf("03"));
  EXPECT_EQ(of(1, {}, {ones, blockOf("f0ffffffffffffffffffffffffffffff"), blockOf("11")}),
            blockOf("05"));
  EXPECT_EQ(of(1, {},
               {ones, blockOf("fbfefefefefefefefefefefefefefefe"),
                blockOf("01010101010101010101010101010101")}),
            Block{});
  EXPECT_EQ(of(2, {}, {blockOf("fdffffffffffffffffffffffffffffff")}),
            blockOf("faffffffffffffffffffffffffffffff"));
}

TEST(Poly1305, DoesNotDependOnHowItsInputIsCut) {
  Block multiplier;
  Block summand;
  std::iota(multiplier.begin(), multiplier.end(), std::uint8_t{100});
  std::iota(summand.begin(), summand.end(), std::uint8_t{116});
  std::array<std::uint8_t, 100> data;
  std::iota(data.begin(), data.end(), std::uint8_t{0});
  const std::pair<std::size_t, const char*> tags[] = {
      {0, "7475767778797a7b7c7d7e7f80818283"},  {1, "74d9dbdd7fe1e3e587e9ebed8ff1f3f5"},
      {15, "6d119795880c724f2081c27a255f903e"}, {16, "1990583b7fd67e4062961ab7b2bf1bbb"},
      {17, "fd7cc903f1868c38bccb29265f4831f4"}, {33, "990ec6ebf066233cbd5a5905ca44a5e7"},
      {100, "d1e9d400f70a4765104b2839b62e390c"}};
  for (const auto& [length, tag] : tags) {
    for (std::size_t cut = 0; cut <= length; ++cut) {
      EXPECT_EQ(Poly1305(multiplier, summand)
                    .update(data.data(), cut)
                    .update(data.data() + cut, length - cut)
                    .finish(),
                blockOf(tag));
    }
  }
}

}  // namespace
}  // namespace gradlink::messages::tcp

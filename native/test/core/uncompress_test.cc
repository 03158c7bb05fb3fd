// What Node's zlib compressed is unpacked; what is none is refused.
#include "core/uncompress.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gradlink {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// zlib.deflateSync made it.
const Bytes kPacked = {0x78, 0x9c, 0x4b, 0x2f, 0x4a, 0x4c, 0xc9, 0xc9, 0xcc, 0xcb, 0x56, 0x48,
                       0x47, 0x67, 0xe8, 0x28, 0x24, 0x92, 0x02, 0x00, 0xfb, 0xbb, 0x1b, 0x7e};

std::string text() { return "gradlink gradlink gradlink, " + std::string(45, 'a'); }

/// 100,000 letters a: more than any guess from the length of what is packed.
Bytes manyLetters() {
  Bytes packed = {0x78, 0x9c, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00, 0x00, 0xc2,
                  0xa0, 0xac, 0xeb, 0x5f, 0xc2, 0x1a, 0x1e, 0x40, 0x01};
  packed.insert(packed.end(), 96, 0x00);
  for (const std::uint8_t last : {0xaf, 0x06, 0x79, 0x66, 0x0b, 0x4d}) packed.push_back(last);
  return packed;
}

std::string unpacked(const Bytes& data, std::size_t most = 4096) {
  const auto* const begin = reinterpret_cast<const char*>(data.data());
  const auto out = uncompress({begin, data.size()}, most);
  return out ? std::string(out->begin(), out->end()) : "refused";
}

TEST(Uncompress, GivesWhatWasPacked) { EXPECT_EQ(unpacked(kPacked), text()); }

TEST(Uncompress, FindsOutHowMuchItIs) {
  EXPECT_EQ(unpacked(manyLetters(), 1 << 20), std::string(100'000, 'a'));
  EXPECT_EQ(unpacked(manyLetters(), 99'999), "refused");
}

TEST(Uncompress, GivesNoMoreThanItMay) {
  EXPECT_EQ(unpacked(kPacked, text().size()), text());
  EXPECT_EQ(unpacked(kPacked, text().size() - 1), "refused");
}

TEST(Uncompress, RefusesWhatIsDamaged) {
  for (std::size_t length = 0; length < kPacked.size(); ++length) {
    const Bytes part(kPacked.begin(), kPacked.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(unpacked(part), "refused") << length << " bytes";
  }
  for (std::size_t at = 2; at < kPacked.size(); ++at) {
    Bytes damaged = kPacked;
    damaged[at] ^= 0x10;
    EXPECT_EQ(unpacked(damaged), "refused") << "byte " << at;
  }
}

}  // namespace
}  // namespace gradlink

#include "core/kernels/copy_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gradlink {
namespace {

// Every place within a line of source and destination, lengths on both sides of each limit.
TEST(CopyBytes, MovesWhatItIsGivenAndNothingBeside) {
  const auto contentOf = [](std::size_t i) { return static_cast<std::byte>(i * 131 >> 3); };
  constexpr std::byte kUntouched{0xee};
  for (auto* const copy : {copyBytes, copyByVectors}) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{200}, kLongCopyFrom - 1,
          kLongCopyFrom, kLongCopyFrom + 77, kLongCopyTo - 1, kLongCopyTo}) {
      const std::size_t step = bytes < kLongCopyTo - 1 ? 1 : 31;
      std::vector<std::byte> from(bytes + 64);
      std::vector<std::byte> to(bytes + 128);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = contentOf(i);
      for (std::size_t place = 0; place < 64; place += step) {
        std::fill(to.begin(), to.end(), kUntouched);
        copy(to.data() + place, from.data() + 63 - place, bytes);
        const auto begin = to.begin() + static_cast<std::ptrdiff_t>(place);
        const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
        const auto isUntouched = [&](std::byte byte) { return byte == kUntouched; };
        EXPECT_TRUE(std::equal(begin, end, from.begin() + 63 - static_cast<std::ptrdiff_t>(place)))
            << bytes << " bytes to " << place;
        EXPECT_TRUE(std::all_of(to.begin(), begin, isUntouched) &&
                    std::all_of(end, to.end(), isUntouched))
            << bytes << " bytes to " << place;
      }
    }
  }
}

}  // namespace
}  // namespace gradlink

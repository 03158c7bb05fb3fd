// How large caches are, told from files as the kernel writes them.
#include "core/memory/cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "test/folder.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kCacheMiB = 1 << 20;

class CacheFiles : public testing::Test {
 protected:
  void cache(int index, const std::string& level, const std::string& type,
             const std::string& size) {
    const std::filesystem::path one = folder_.path() + ("/index" + std::to_string(index));
    std::filesystem::create_directories(one);
    std::ofstream(one / "level") << level << "\n";
    std::ofstream(one / "type") << type << "\n";
    std::ofstream(one / "size") << size << "\n";
  }
  std::size_t bytes(long library) const { return lastLevelCacheBytes(folder_.path(), library); }
  std::size_t secondLevelBytes(long library) const {
    return secondLevelCacheBytes(folder_.path(), library);
  }

 private:
  TestFolder folder_;
};

TEST_F(CacheFiles, TheLastLevelCounts) {
  cache(0, "1", "Data", "48K");
  cache(1, "1", "Instruction", "32K");
  cache(2, "2", "Unified", "1024K");
  cache(3, "3", "Unified", "98304K");
  EXPECT_EQ(bytes(384 * kCacheMiB), 96 * kCacheMiB);
}

TEST_F(CacheFiles, WithoutAThirdTheSecondCounts) {
  cache(0, "1", "Data", "64K");
  cache(1, "2", "Unified", "4M");
  EXPECT_EQ(bytes(0), 4 * kCacheMiB);
}

TEST_F(CacheFiles, TheSecondLevelIsOneOfACore) {
  EXPECT_EQ(secondLevelBytes(512 << 10), 512u << 10);
  EXPECT_EQ(secondLevelBytes(0), kCacheMiB);
  cache(0, "1", "Data", "48K");
  cache(1, "1", "Instruction", "32K");
  cache(2, "2", "Unified", "2048K");
  cache(3, "3", "Unified", "98304K");
  EXPECT_EQ(secondLevelBytes(512 << 10), 2 * kCacheMiB);
}

TEST_F(CacheFiles, AllCachesOfASocketAreNotTakenForOne) {
  EXPECT_EQ(bytes(508 * kCacheMiB), 32 * kCacheMiB);
}

TEST_F(CacheFiles, TheLibrarysWordCountsWhereItIsModest) {
  EXPECT_EQ(bytes(8 * kCacheMiB), 8 * kCacheMiB);
}

TEST_F(CacheFiles, NobodyKnows) {
  EXPECT_EQ(bytes(0), 32 * kCacheMiB);
  EXPECT_EQ(bytes(-1), 32 * kCacheMiB);
}

}  // namespace
}  // namespace gradlink::test

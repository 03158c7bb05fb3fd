// How memory is copied and touched, how much of it is left, and how large the caches before it are:
// told from files as the kernel writes them.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#include "core/kernels/copy_bytes.h"
#include "core/memory/cache.h"
#include "core/memory/free_memory.h"
#include "core/memory/huge_pages.h"
#include "test/folder.h"

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

constexpr std::size_t kPage = 4096;
// Not a whole number of what a thread takes at a time.
constexpr std::size_t kBytes = 5 * kHugePageBytes + 3 * kPage;

/// Memory of a file that holds nothing yet.
class SharedPages {
 public:
  SharedPages() : file_(memfd_create("touched", MFD_CLOEXEC)) {
    if (ftruncate(file_, kBytes) != 0) std::abort();
    base_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~SharedPages() {
    munmap(base_, kBytes);
    close(file_);
  }
  char* base() const { return base_; }
  std::ptrdiff_t resident() const {
    std::vector<unsigned char> pages(kBytes / kPage);
    if (mincore(base_, kBytes, pages.data()) != 0) std::abort();
    return std::count_if(pages.begin(), pages.end(), [](auto page) { return (page & 1) != 0; });
  }

 private:
  int file_;
  char* base_;
};

bool isOldKernel(const SharedPages& pages) {
  return madvise(pages.base(), kPage, 23 /* MADV_POPULATE_WRITE */) != 0 && errno == EINVAL;
}

TEST(TouchPages, MakesEveryPageAndKeepsWhatTheyHold) {
  const SharedPages pages;
  if (isOldKernel(pages)) GTEST_SKIP() << "needs Linux 5.14";
  pages.base()[kHugePageBytes + 1] = 'x';
  EXPECT_LE(pages.resident(), 2);
  EXPECT_EQ(touchPages(pages.base(), kBytes), 0);
  EXPECT_EQ(pages.resident(), static_cast<std::ptrdiff_t>(kBytes / kPage));
  EXPECT_EQ(pages.base()[kHugePageBytes + 1], 'x');
  EXPECT_EQ(pages.base()[kBytes - 1], 0);
}

TEST(TouchPages, TellsOfPagesThatAreNotThere) {
  const SharedPages pages;
  if (isOldKernel(pages)) GTEST_SKIP() << "needs Linux 5.14";
  ASSERT_EQ(munmap(pages.base() + 2 * kHugePageBytes, kPage), 0);
  EXPECT_NE(touchPages(pages.base(), kBytes), 0);
}

}  // namespace
}  // namespace gradlink

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

constexpr std::uint64_t kMiB = 1 << 20;

/// A machine with 32 GiB, of which 16 can be had, whose files lie in a folder.
class FreeMemoryFiles : public testing::Test {
 protected:
  void SetUp() override {
    write("meminfo",
          "MemTotal:       33554432 kB\nMemFree: 1 kB\nMemAvailable:   16777216 "
          "kB\nHugePages_Total: 0\n");
    write("groups", "");
  }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  FreeMemory free() const {
    return freeMemory({folder_.file("meminfo"), folder_.file("groups"), folder_.file("tree")});
  }

  /// 16 GiB without what is kept for others.
  static constexpr std::uint64_t kOfMachine = (16384 - 256) * kMiB;

 private:
  TestFolder folder_;
};

TEST_F(FreeMemoryFiles, WithoutGroupsIsTheMachines) {
  EXPECT_EQ(free().bytes, kOfMachine);
  EXPECT_EQ(free().of, "the machine");
}

TEST_F(FreeMemoryFiles, OfVersion2IsBoundByEachGroupOnTheWayUp) {
  write("groups", "0::/job/step\n");
  write("tree/job/memory.max", "1048576000\n");
  write("tree/job/memory.current", "524288000\n");
  write("tree/job/memory.stat", "anon 1\ninactive_file 104857600\nactive_file 52428800\n");
  write("tree/job/step/memory.max", "max\n");
  write("tree/job/step/memory.current", "1\n");
  // 1000 MiB, of which 500 are used and 150 of these only copies of files; a sixteenth is kept.
  EXPECT_EQ(free().bytes, 650 * kMiB - 1000 * kMiB / 16);
  EXPECT_NE(free().of.find("1048576000"), std::string::npos) << free().of;
}

TEST_F(FreeMemoryFiles, OfVersion1IsTheMemoryControllers) {
  write("groups", "5:cpu,cpuacct:/other\n4:memory:/job\n0::/\n");
  write("tree/memory/job/memory.limit_in_bytes", "629145600\n");
  write("tree/memory/job/memory.usage_in_bytes", "419430400\n");
  write("tree/memory/job/memory.stat", "cache 1\ninactive_file 7\ntotal_inactive_file 104857600\n");
  EXPECT_EQ(free().bytes, 300 * kMiB - 600 * kMiB / 16);
}

TEST_F(FreeMemoryFiles, OfAContainerThatSeesOnlyItsOwnGroup) {
  write("groups", "4:memory:/docker/0123456789abcdef\n");
  write("tree/memory/memory.limit_in_bytes", "629145600\n");
  write("tree/memory/memory.usage_in_bytes", "629145600\n");
  EXPECT_EQ(free().bytes, 0u);
}

TEST_F(FreeMemoryFiles, OfAGroupThatHasMoreThanTheMachineIsTheMachines) {
  write("groups", "4:memory:/\n");
  write("tree/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("tree/memory/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(free().bytes, kOfMachine);
}

TEST_F(FreeMemoryFiles, UnknownIsUnbounded) {
  EXPECT_EQ(freeMemory({"/nowhere", "/nowhere", "/nowhere"}).bytes, UINT64_MAX);
}

}  // namespace
}  // namespace gradlink::test

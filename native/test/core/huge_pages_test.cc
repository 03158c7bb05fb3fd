#include "core/memory/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace gradlink {
namespace {

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

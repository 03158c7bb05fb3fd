// How much memory is left, told from files as the kernel writes them.
#include "core/memory/free_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/folder.h"

namespace gradlink::test {
namespace {

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

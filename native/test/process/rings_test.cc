// The rings between processes outlive their communicator, and are never two's at a time.
#include <cstdio>
#include <memory>
#include <set>

#include "shm/rendezvous/spare_rings.h"
#include "test/process/support.h"

namespace gradlink::test {
namespace {

constexpr int kRanks = 2;
// One more than there are ranks: one of them leads two of the rendezvous.
constexpr int kParts = kRanks + 1;

/// The files of this process's segments; of each the rings are mapped, and the segment itself.
std::set<std::string> segmentFiles() {
  std::set<std::string> files;
  char file[32];
  for (const std::string& line : linesWith("/proc/self/maps", "memfd:gradlink")) {
    if (sscanf(line.c_str(), "%*s %*s %*s %*s %31s", file) == 1) files.insert(file);
  }
  return files;
}

/// Calls that go through the rings, of every kind, with rests of others' data in them.
std::string useRings(Communicator& comm) {
  std::vector<Case> cases;
  for (const Op op : kAllOps) cases.push_back({op, kRanks, 150001});
  return runAll(comm, cases);
}

// What is held of a part that all have closed is done with its rings all the same.
TEST(Rings, AreTakenOverOnceAllRanksAreDone) {
  for (const int closing : {1, kRanks}) {
    expectNone(onRanks(kRanks, [closing](Communicator& comm, int rank) -> std::string {
      const std::size_t before = segmentFiles().size();
      std::vector<std::unique_ptr<Communicator>> parts;
      for (int i = 0; i < kParts; ++i) {
        parts.push_back(comm.split(0, 0, {}));
        if (std::string wrong = useRings(*parts.back()); !wrong.empty()) return wrong;
        if (rank < closing) parts.back()->close();
      }
      const bool apart = segmentFiles().size() >= before + 2 * kParts;
      if (closing == kRanks) return apart ? "every part has rings of its own" : "";
      return apart ? "" : "parts share their rings that somebody may use";
    }));
  }
}

TEST(Rings, AreTakenOverInTheirJobAlone) {
  auto& spares = shm::SpareRings::ofProcess();
  const shm::JoinOptions own = optionsFor(freshName(), 0, kRanks);
  shm::JoinOptions other = own;
  other.job = "another";
  const shm::Segment shape(nullptr, kRanks, shm::Segment::roundSlot(kRanks, own.slotBytes));
  shm::SegmentFiles files = shm::makeSegmentFiles(kRanks, own.slotBytes);
  // All are done with them.
  const std::uint32_t marks[kRanks] = {1, 1};
  ASSERT_EQ(pwrite(files.rings.get(), marks, sizeof(marks), static_cast<off_t>(shape.ringsAt())),
            static_cast<ssize_t>(sizeof(marks)));
  const auto open = spares.keep(own, shape, std::move(files.rings));
  EXPECT_FALSE(spares.take(other));
  EXPECT_TRUE(spares.take(own));
}

// Its end says no second time that it is done: by then the rings may be another's. Who leads keeps
// them, and who leads is chance: hence several jobs.
TEST(Rings, AreNotGivenUpByTheirFormerOwner) {
  for (int job = 0; job < 8; ++job) {
    expectNone(onRanks(kRanks, [](Communicator& comm, int) -> std::string {
      const std::size_t before = segmentFiles().size();
      auto former = comm.split(0, 0, {});
      former->close();
      const auto current = comm.split(0, 0, {});
      former.reset();
      const auto beside = comm.split(0, 0, {});
      if (segmentFiles().size() != before + 4) return "two open parts share their rings";
      return useRings(*current);
    }));
  }
}

}  // namespace
}  // namespace gradlink::test

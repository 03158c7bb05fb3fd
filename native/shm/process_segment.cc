#include "shm/process_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/memory/cache.h"
#include "core/memory/huge_pages.h"

namespace gradlink::shm {
namespace {

// Changed with every change of the layout: two versions of the package must not share a segment.
constexpr std::uint64_t kMagic = 0x4752414c4e4b3033;

class LockLiveness final : public Liveness {
 public:
  explicit LockLiveness(File file) : file_(std::move(file)) {}

  bool alive(int rank) override {
    struct flock lock = byteOf(rank);
    if (fcntl(file_.get(), F_OFD_GETLK, &lock) != 0) return true;
    return lock.l_type != F_UNLCK;
  }
  void take(int rank) {
    struct flock lock = byteOf(rank);
    if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) {
      throw systemError("join: cannot lock this rank's place in the segment", errno);
    }
  }
  int file() const { return file_.get(); }

 private:
  static struct flock byteOf(int rank) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
  }
  File file_;
};

/// A memfd of zeros without pages.
File makeFile(std::size_t bytes) {
  File file(memfd_create("gradlink", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw systemError("join: cannot create the segment", errno);
  if (fchmod(file.get(), 0600) != 0 || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw systemError("join: cannot set up the segment of " + std::to_string(bytes) + " bytes",
                      errno);
  }
  // Shrinking it would turn every access of the others into a SIGBUS.
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  return file;
}

/// Maps them over that part of the segment's own file.
void mapRings(const Segment& segment, const File& rings) {
  void* memory = mmap(segment.rings(), segment.ringBytes(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, rings.get(), static_cast<off_t>(segment.ringsAt()));
  if (memory == MAP_FAILED) throw systemError("join: cannot map the segment's rings", errno);
  // Not the mailboxes: most of them are never used.
  adviseHugePages(memory, segment.ringBytes());
}

}  // namespace

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

int File::release() { return std::exchange(descriptor_, -1); }

SegmentFiles makeSegmentFiles(int size, std::size_t slotBytes, File rings) {
  const std::size_t slot = Segment::roundSlot(size, slotBytes);
  const Segment shape(nullptr, size, slot);
  const std::size_t bytes = Segment::bytesFor(size, slot);
  File file = makeFile(bytes);
  void* memory =
      mmap(nullptr, sizeof(SegmentHeader), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) throw systemError("join: cannot map the segment", errno);
  auto& header = *static_cast<SegmentHeader*>(memory);
  header.bytes = bytes;
  header.size = static_cast<std::uint32_t>(size);
  header.secondCacheBytes = static_cast<std::uint32_t>(secondLevelCacheBytes());
  header.slotBytes = slot;
  header.fileEnd.store(bytes);
  header.magic = kMagic;
  munmap(memory, sizeof(SegmentHeader));
  if (!rings) rings = makeFile(shape.ringsAt() + shape.ringBytes());
  return {std::move(file), std::move(rings)};
}

Membership enterSegment(const SegmentFiles& files, int rank) {
  // A new open file description: locks belong to it, and a passed descriptor shares the sender's.
  const std::string path = "/proc/self/fd/" + std::to_string(files.control.get());
  File file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw systemError("join: cannot open the segment through " + path, errno);
  auto map = [&](std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) throw systemError("join: cannot map the segment", errno);
    return memory;
  };
  void* first = map(sizeof(SegmentHeader));
  const auto& header = *static_cast<SegmentHeader*>(first);
  const std::uint64_t magic = header.magic;
  const std::size_t bytes = header.bytes;
  const auto size = static_cast<int>(header.size);
  const std::size_t slotBytes = header.slotBytes;
  munmap(first, sizeof(SegmentHeader));
  if (magic != kMagic || size > kMaxRanks || bytes != Segment::bytesFor(size, slotBytes)) {
    throw Error(ErrorCode::mismatch,
                "join: the ranks use different versions of gradlink; install the same one for all")
        .withOp("join");
  }
  void* memory = map(bytes);
  Membership membership;
  membership.memory = std::shared_ptr<void>(memory, [bytes](void* m) { munmap(m, bytes); });
  membership.segment = Segment(memory, size, slotBytes);
  mapRings(membership.segment, files.rings);
  auto liveness = std::make_unique<LockLiveness>(std::move(file));
  liveness->take(rank);
  membership.file = liveness->file();
  membership.liveness = std::move(liveness);
  recordCores(membership.segment, rank);
  return membership;
}

}  // namespace gradlink::shm

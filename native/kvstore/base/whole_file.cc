#include "kvstore/base/whole_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/error.h"

namespace gradlink {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::string& what, int error) {
  throw systemError(what, error).stillUsable();
}

void writeAll(int descriptor, std::span<const std::uint8_t> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("cannot write " + name, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

void writeFileAtomically(const std::string& file, std::span<const std::uint8_t> bytes) {
  // A replaced file keeps its permissions; a new one is the owner's alone, as mkostemp makes it.
  struct stat before {};
  const bool replaces = stat(file.c_str(), &before) == 0;
  std::string temporary = file + ".XXXXXX";
  const Descriptor descriptor(mkostemp(temporary.data(), O_CLOEXEC));
  if (descriptor.get() < 0) fail("cannot create a temporary file beside " + file, errno);
  try {
    if (replaces && fchmod(descriptor.get(), before.st_mode & 07777) != 0) {
      fail("cannot set the permissions of " + temporary, errno);
    }
    writeAll(descriptor.get(), bytes, temporary);
    // The data must be on the disk before the name points to it.
    if (fsync(descriptor.get()) != 0) fail("cannot write " + temporary, errno);
    if (rename(temporary.c_str(), file.c_str()) != 0) fail("cannot replace " + file, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

std::vector<std::uint8_t> readWholeFile(const std::string& file) {
  const Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) fail("cannot read " + file, errno);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) fail("cannot read " + file, errno);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = read(descriptor.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("cannot read " + file, errno);
    }
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace gradlink

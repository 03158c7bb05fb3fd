#include "kvstore/base/whole_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <string_view>

#include "core/error.h"
#include "kvstore/base/misuse.h"

namespace gradlink {
namespace {

/// Closes its file descriptor.
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

constexpr int kMostLinks = 40;  // as in the kernel
constexpr std::string_view kPartial = ".partial";

std::string folderOf(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error noRegularFile(const std::string& file, mode_t mode) {
  return storeMisuse(file + ": expected a regular file, got " + kindOf(mode) +
                     "; name another file");
}

/// The start of a temporary file's name, before the writer's part: unique and short enough.
std::string partialPrefix(const std::string& file) {
  constexpr std::size_t kKept = 80;
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  const std::string folder = folderOf(file);
  return folder + "." + file.substr(folder.size(), kKept) + "." + host + ".";
}

/// Removes temporary files of processes of this host that were killed while they wrote `file`.
void removeLeftovers(const std::string& file) {
  const std::string folder = folderOf(file);
  const std::string prefix = partialPrefix(file).substr(folder.size());
  DIR* const entries = opendir(folder.empty() ? "." : folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* const entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(kPartial)) continue;
    pid_t writer = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + prefix.size(), end, writer);
    if (read.ec != std::errc() || *read.ptr != '.' || writer <= 0) continue;
    if (kill(writer, 0) != 0 && errno == ESRCH) unlink((folder + std::string(name)).c_str());
  }
  closedir(entries);
}

/// Makes the new name durable. File systems that cannot do this do not promise it.
void syncFolder(const std::string& file) {
  const std::string folder = folderOf(file);
  const Descriptor descriptor(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0 && fsync(descriptor.get()) != 0 && errno == EIO) {
    fail("cannot write the folder of " + file, errno);
  }
}

}  // namespace

std::string linkedFile(const std::string& file) {
  std::string at = file;
  for (int links = 0; links < kMostLinks; ++links) {
    char target[PATH_MAX];
    const ssize_t length = readlink(at.c_str(), target, sizeof target);
    if (length < 0) return at;
    const std::string next(target, static_cast<std::size_t>(length));
    at = next.starts_with('/') ? next : folderOf(at).append(next);
  }
  fail("cannot follow " + file, ELOOP);
}

void requireReplaceable(const std::string& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw noRegularFile(file, status.st_mode);
  }
}

void writeFileAtomically(const std::string& name, std::span<const std::uint8_t> bytes) {
  writeOwnFile(linkedFile(name), bytes);
}

void writeOwnFile(const std::string& file, std::span<const std::uint8_t> bytes) {
  // A replaced file keeps its permissions; a new one is private, as mkostemps makes it.
  struct stat before {};
  requireReplaceable(file);
  const bool replaces = lstat(file.c_str(), &before) == 0;
  removeLeftovers(file);
  std::string temporary =
      partialPrefix(file) + std::to_string(getpid()) + ".XXXXXX" + std::string(kPartial);
  const Descriptor descriptor(
      mkostemps(temporary.data(), static_cast<int>(kPartial.size()), O_CLOEXEC));
  if (descriptor.get() < 0) fail("cannot create a temporary file beside " + file, errno);
  try {
    if (replaces) {
      // Only root may change the owner; others own the file already.
      if (before.st_uid != geteuid() || before.st_gid != getegid()) {
        [[maybe_unused]] const int kept = fchown(descriptor.get(), before.st_uid, before.st_gid);
      }
      if (fchmod(descriptor.get(), before.st_mode & 07777) != 0) {
        fail("cannot set the permissions of " + temporary, errno);
      }
    }
    writeAll(descriptor.get(), bytes, temporary);
    // The data must be on disk before the name points to it.
    if (fsync(descriptor.get()) != 0) fail("cannot write " + temporary, errno);
    if (rename(temporary.c_str(), file.c_str()) != 0) fail("cannot replace " + file, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  syncFolder(file);
}

std::vector<std::uint8_t> readWholeFile(const std::string& file) {
  // O_NONBLOCK: opening a FIFO without a writer would block forever.
  const Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) fail("cannot read " + file, errno);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) fail("cannot read " + file, errno);
  if (!S_ISREG(status.st_mode)) throw noRegularFile(file, status.st_mode);
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

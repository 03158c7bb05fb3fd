// Communicators over NCCL: ranks are GPUs, buffers are device memory.
//
// In one process a communicator holds one rank for each GPU; in a job each process holds one rank.
// libnccl.so.2 (or the file GRADLINK_NCCL_LIBRARY names) is loaded at first use; what a version
// lacks is found by its symbols.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/communicator.h"

namespace gradlink::nccl {

/// How ranks find each other: made on one, carried to all by other means.
using UniqueId = std::array<char, 128>;

/// What the loaded library is and can do. Throws Error(backendUnavailable) that says which file was
/// looked for and where.
struct LibraryInfo {
  std::string file;
  /// 2.28.9 as 22809; see decodeVersion.
  int version;
  bool float8;
  bool simulation;    // ncclGroupSimulateEnd
  bool registration;  // ncclCommRegister
  bool split;
};
const LibraryInfo& libraryInfo();
/// "2.28.9", of both of NCCL's encodings.
std::string versionText(int code);

UniqueId makeUniqueId();

struct Options {
  /// Of each call, and of the meeting.
  double timeoutMs = 30000;
};

/// One rank for each of these GPUs, all in this process. Distinct, except where the library permits
/// several ranks on one GPU.
std::unique_ptr<Communicator> openLocal(std::span<const int> gpus, const Options&);
/// One rank of `size`, on this GPU. Returns when all have come.
std::unique_ptr<Communicator> join(const UniqueId&, int rank, int size, int gpu, const Options&);

}  // namespace gradlink::nccl

// The functions that gradlink needs of an MPI, as a table with neutral handles. MPI has no binary
// interface: handles are pointers in Open MPI and integers in MPICH. So mpi_shim.cc is compiled
// against each MPI into a shared object that is loaded at first use; no other file includes mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink::messages {

struct CommHandle {
  std::uint64_t bits = 0;
};
struct RequestHandle {
  std::uint64_t bits = 0;
};

/// Of a message that has come or was probed.
struct MessageStatus {
  int source = 0;
  int tag = 0;
  std::size_t bytes = 0;
};

inline constexpr int kAnySourceOfShim = -1;
inline constexpr int kAnyTagOfShim = -1;

/// MPI counts in int.
inline constexpr std::size_t kMostMessageBytes = std::size_t{1} << 30;

inline constexpr int kMostTogether = 8;

/// Changes with every change of Shim: a shared object of another build is refused.
inline constexpr std::uint32_t kShimVersion = 3;

/// Functions that return int return 0 or an error of MPI (errorText). Errors of communicators are
/// not fatal. All are thread-safe after `init`.
struct Shim {
  std::uint32_t version;
  /// "openmpi" or "mpich", as compiled.
  const char* flavour;
  /// MPI_Get_library_version's text; callable before init.
  const char* (*libraryVersion)();
  void (*errorText)(int error, char* text, std::size_t capacity);
  /// The rank to blame and the ErrorCode of an error; null if only MPI's text is known.
  void (*blames)(int error, int* code, int* rank);

  bool (*initialized)();
  /// Asks for MPI_THREAD_MULTIPLE; `multiple`: whether it is provided. MPIs ignore the timeout.
  int (*init)(double timeoutMs, bool* multiple);
  int (*finalize)();
  /// Ends all processes of the job. May return before it takes effect.
  void (*abortJob)(int status);
  bool (*cudaAware)();

  CommHandle (*world)();
  int (*rank)(CommHandle, int* rank);
  int (*size)(CommHandle, int* size);
  /// Collective among the named ranks only, in their order; concurrent calls use different tags.
  int (*createGroup)(CommHandle, const int* ranks, int count, int tag, CommHandle* made);
  int (*duplicate)(CommHandle, CommHandle* made);
  /// The lowest rank that shares memory with this one, by MPI_Comm_split_type. Collective.
  int (*lowestOfNode)(CommHandle, int* lowest);
  int (*freeComm)(CommHandle);

  int (*isend)(const void*, std::size_t bytes, int destination, int tag, CommHandle,
               RequestHandle*);
  int (*irecv)(void*, std::size_t bytes, int source, int tag, CommHandle, RequestHandle*);
  /// Frees the request once done. `status` may be null.
  int (*test)(RequestHandle*, bool* done, MessageStatus* status);
  /// Frees all requests once all are done, none before; at most kMostTogether.
  int (*testAll)(RequestHandle*, int count, bool* done);
  /// The request must still be tested until done.
  int (*cancel)(RequestHandle*);
  /// Gives up a send, whose data may then change; null if the data must stay.
  void (*release)(RequestHandle*);
  int (*probe)(int source, int tag, CommHandle, bool* found, MessageStatus* status);
  /// Blocks; for a probed message.
  int (*receive)(void*, std::size_t bytes, int source, int tag, CommHandle, MessageStatus*);

  /// The lowest rank above `after` whose process has ended, or -1. Null if that ends the job.
  int (*goneAbove)(CommHandle, int after);
  /// The reason. Null together with goneAbove.
  const char* (*whyGone)(CommHandle, int rank);
};

/// What a shim's shared object exports under kShimSymbol.
using ShimEntry = const Shim* (*)();
inline constexpr const char* kShimSymbol = "gradlinkMpiShim";

}  // namespace gradlink::messages

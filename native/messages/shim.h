// What gradlink needs of an MPI, as a table of functions with neutral handles. MPI fixes no binary
// interface: its handles are pointers in Open MPI and integers in MPICH. shim.cc is therefore
// compiled once against each MPI, into a shared object that is loaded at first use, and nothing
// else includes an MPI's header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink::messages {

/// Holds the MPI's own handle, whatever that is.
struct CommHandle {
  std::uint64_t bits = 0;
};
struct RequestHandle {
  std::uint64_t bits = 0;
};

/// Of a message that has come or is at hand.
struct MessageStatus {
  int source = 0;
  int tag = 0;
  std::size_t bytes = 0;
};

inline constexpr int kAnySourceOfShim = -1;
inline constexpr int kAnyTagOfShim = -1;

/// The most bytes of one message: MPI counts in int.
inline constexpr std::size_t kMostMessageBytes = std::size_t{1} << 30;

inline constexpr int kMostTogether = 8;

/// Changes with every change of Shim: a shared object of another build is refused.
inline constexpr std::uint32_t kShimVersion = 3;

/// Functions that return int give 0 or an error of MPI's (errorText). Errors of communicators are
/// returned, not fatal. All may be called from any thread once `init` has been.
struct Shim {
  std::uint32_t version;
  /// "openmpi" or "mpich", as compiled.
  const char* flavour;
  /// MPI_Get_library_version's text; callable before init.
  const char* (*libraryVersion)();
  void (*errorText)(int error, char* text, std::size_t capacity);
  /// Whom an error blames, and its kind as an ErrorCode; null where only MPI's text is known.
  void (*blames)(int error, int* code, int* rank);

  bool (*initialized)();
  /// Asks for MPI_THREAD_MULTIPLE; `multiple`: whether it is given. MPIs know no deadline.
  int (*init)(double timeoutMs, bool* multiple);
  int (*finalize)();
  /// Ends all processes of the job. May return before it has an effect.
  void (*abortJob)(int status);
  /// Whether messages may lie in device memory.
  bool (*cudaAware)();

  CommHandle (*world)();
  int (*rank)(CommHandle, int* rank);
  int (*size)(CommHandle, int* size);
  /// Collective among the named ranks only, whose order is the new one's; concurrent calls differ
  /// in their tags.
  int (*createGroup)(CommHandle, const int* ranks, int count, int tag, CommHandle* made);
  int (*duplicate)(CommHandle, CommHandle* made);
  /// The lowest rank among those that share this one's memory, by MPI_Comm_split_type. Collective.
  int (*lowestOfNode)(CommHandle, int* lowest);
  int (*freeComm)(CommHandle);

  int (*isend)(const void*, std::size_t bytes, int destination, int tag, CommHandle,
               RequestHandle*);
  int (*irecv)(void*, std::size_t bytes, int source, int tag, CommHandle, RequestHandle*);
  /// Once done, the request is gone. `status` may be null.
  int (*test)(RequestHandle*, bool* done, MessageStatus* status);
  /// Once done all are gone, at most kMostTogether; until then none is.
  int (*testAll)(RequestHandle*, int count, bool* done);
  /// The request still has to be tested until done.
  int (*cancel)(RequestHandle*);
  /// Nobody waits for this send any more, and its data may change; null where such data must stay.
  void (*release)(RequestHandle*);
  int (*probe)(int source, int tag, CommHandle, bool* found, MessageStatus* status);
  /// Waits; for a message that probe has found.
  int (*receive)(void*, std::size_t bytes, int source, int tag, CommHandle, MessageStatus*);

  /// The lowest rank above `after` whose process has ended, -1: none. Null where a process that
  /// ends takes the job with it.
  int (*goneAbove)(CommHandle, int after);
  /// Why that one is gone. Null where goneAbove is.
  const char* (*whyGone)(CommHandle, int rank);
};

/// What a shim's shared object exports under kShimSymbol.
using ShimEntry = const Shim* (*)();
inline constexpr const char* kShimSymbol = "gradlinkMpiShim";

}  // namespace gradlink::messages

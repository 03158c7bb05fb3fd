// Ways into MPI: ranks are processes of an mpirun or srun job, on one host or many.
//
// The MPI is loaded at the first call: the one the launcher's environment speaks of, or that
// GRADLINK_MPI names. It is initialised once a process and finalised when the process exits.
//
// A process that dies takes the job with it: that is what MPI launchers do. What MPI itself reports
// as a failure ends the communicator with ERR_SYSTEM and MPI's text.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/one_rank.h"
#include "messages/tcp/settings.h"

namespace gradlink::messages {

/// Which MPI this process uses.
struct LibraryInfo {
  /// "openmpi", "mpich", or "tcp" for ranks without MPI.
  std::string flavour;
  /// "Open MPI v4.1.4": the first line of what it says of itself.
  std::string version;
  /// The shim that was loaded.
  std::string file;
  /// Why this one: "GRADLINK_MPI", or the variable of the launcher that told.
  std::string chosenBy;
};

/// Loads it, without initialising MPI. Throws Error(backendUnavailable) that says what was looked
/// for, where, why that one, and what to do.
const LibraryInfo& libraryInfo();

/// The ranks meet over TCP, whatever MPI there is. Before the first join; throws where this process
/// has joined over MPI already.
void useTcp(const tcp::Settings&);

/// This process's place in its job.
struct Place {
  int rank = 0;
  int size = 1;
  /// Whether MPI takes buffers in device memory.
  bool cudaAware = false;
};

/// Initialises MPI, which waits for all processes of the job. Throws timeout when they have not
/// come by then, unsupported where the MPI has no MPI_THREAD_MULTIPLE.
Place start(double timeoutMs = 30000, const std::atomic<bool>* cancelled = nullptr);

/// An MPI communicator's further abilities. backend() is "mpi", or "tcp" where there is none.
class MpiCommunicator : public OneRank {
 public:
  using OneRank::OneRank;

  /// The node of each rank, numbered by their lowest ranks: those of equal number share memory.
  /// From MPI (MPI_Comm_split_type), or, where GRADLINK_RANKS_PER_NODE is k, each k consecutive
  /// ranks are one. Collective; the result is kept, so that only the first call communicates.
  virtual const std::vector<int>& nodes(const CallOptions& = {}) = 0;
  /// This communicator's ranks as ranks of the job (of MPI_COMM_WORLD).
  virtual const std::vector<int>& worldRanks() const = 0;
};

struct JoinOptions {
  /// Ranks that give the same name and ranks meet. The same names may be used again once all
  /// members have joined.
  std::string name;
  /// The members' ranks in the job, ascending; this process is among them. Empty: all of the job.
  std::vector<int> ranks;
  /// Until everybody has come, and the default for each call.
  double timeoutMs = 30000;
  /// Looked at while waiting for the others: once true, join gives up with ERR_CLOSED. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Blocks until all members have come. Throws timeout naming the missing ranks. Others of the job
/// need not take part.
std::unique_ptr<MpiCommunicator> join(const JoinOptions&);

/// As Communicator::split, with what MPI communicators have beside.
std::unique_ptr<MpiCommunicator> splitMpi(MpiCommunicator&, int color, int key,
                                          const CallOptions& = {});

/// Writes `message` to standard error and ends all processes of the job with this status (1 for
/// 0). Does nothing but write where MPI is not running. Safe from any thread.
void abortJob(const std::string& message, int status = 1);

/// What the process's exit does by itself: ends what is pending and finalises MPI, which may wait
/// for the other processes of the job to do the same. Nothing of this header may be called after.
void finalize();

}  // namespace gradlink::messages

// Joining over MPI: ranks are processes of an mpirun or srun job, on one host or many.
//
// The first call loads the MPI of the launcher's environment, or the one that GRADLINK_MPI names.
// It is initialized once a process and finalized when the process exits.
//
// A process that dies takes the job with it: MPI launchers do that. An error of MPI ends the
// communicator with ERR_SYSTEM and MPI's text.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/one_rank.h"
#include "messages/tcp/settings.h"

namespace gradlink::messages {

struct LibraryInfo {
  /// "openmpi", "mpich", or "tcp" for ranks without MPI.
  std::string flavour;
  /// "Open MPI v4.1.4": the first line of the library's version text.
  std::string version;
  std::string file;
  /// Why this one was chosen: "GRADLINK_MPI", or the launcher's variable.
  std::string chosenBy;
};

/// Loads the shim without initializing MPI. Throws Error(backendUnavailable) with the remedy.
const LibraryInfo& libraryInfo();

/// The ranks meet over TCP instead of MPI. Before the first join; throws after one over MPI.
void useTcp(const tcp::Settings&);

/// This process's rank in its job.
struct Place {
  int rank = 0;
  int size = 1;
  bool cudaAware = false;
};

/// Initializes MPI, which waits for all processes of the job. Throws a timeout if they do not come,
/// and unsupported without MPI_THREAD_MULTIPLE.
Place start(double timeoutMs = 30000, const std::atomic<bool>* cancelled = nullptr);

/// An MPI communicator's additional functions. backend() is "mpi", or "tcp" without MPI.
class MpiCommunicator : public OneRank {
 public:
  using OneRank::OneRank;

  /// Each rank's node, numbered by lowest ranks; ranks of one node share memory. From
  /// MPI_Comm_split_type, or k consecutive ranks each if GRADLINK_RANKS_PER_NODE is k. Collective;
  /// only the first call communicates.
  virtual const std::vector<int>& nodes(const CallOptions& = {}) = 0;
  virtual const std::vector<int>& worldRanks() const = 0;
};

struct JoinOptions {
  /// Ranks with the same name and list meet. A name may be reused once all members have joined.
  std::string name;
  /// The members' ranks in the job, ascending, this process included. Empty: the whole job.
  std::vector<int> ranks;
  /// For the rendezvous, and the default of calls.
  double timeoutMs = 30000;
  /// Checked during the rendezvous: once true, join throws ERR_CLOSED. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Blocks until all members have come; throws a timeout naming the missing. Others may stay away.
std::unique_ptr<MpiCommunicator> join(const JoinOptions&);

/// Communicator::split with the result's full type.
std::unique_ptr<MpiCommunicator> splitMpi(MpiCommunicator&, int color, int key,
                                          const CallOptions& = {});

/// Writes `message` to standard error and ends all processes of the job with this status (1 for 0).
/// Only writes if MPI is not running. Thread-safe.
void abortJob(const std::string& message, int status = 1);

/// Runs at the process's exit by itself: ends pending calls and finalizes MPI, which may wait for
/// the other processes. Nothing in this header may be called afterwards.
void finalize();

}  // namespace gradlink::messages

// Worlds whose processes hold several ranks each: who holds which rank, and a control communicator
// between the processes whose errors speak of ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/forwarding_communicator.h"

namespace gradlink::nccl {

class Processes {
 public:
  /// Each process's ranks, ascending; every rank once.
  explicit Processes(std::vector<std::vector<int>> ranks);
  /// counts[p] ranks in process p, after those of process p - 1.
  static Processes inOrder(const std::vector<int>& counts);

  int size() const { return static_cast<int>(ranks_.size()); }
  int ranks() const { return static_cast<int>(holders_.size()); }
  int first(int process) const { return ranksOf(process).front(); }
  int count(int process) const { return static_cast<int>(ranksOf(process).size()); }
  /// The ranks of the largest process.
  int most() const { return most_; }
  const std::vector<int>& ranksOf(int process) const {
    return ranks_[static_cast<std::size_t>(process)];
  }
  int holder(int rank) const { return holders_[static_cast<std::size_t>(rank)]; }
  /// "process 1 (ranks 2, 3)"; "rank 1" if every process holds one.
  std::string nameOf(int process) const;

 private:
  std::vector<std::vector<int>> ranks_;
  std::vector<int> holders_;
  int most_ = 1;
};

/// Names processes in errors by the ranks that they hold. Calls are one for each process.
class ProcessControl final : public ForwardingCommunicator {
 public:
  ProcessControl(std::unique_ptr<Communicator> inner, Processes processes)
      : ForwardingCommunicator(std::move(inner)), processes_(std::move(processes)) {}

  void run(const Call& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& = {}) override;
  void check(const char* op) override;
  void abort(const std::string& reason) override;

 private:
  Error ofRanks(const Error& ofProcesses) const;
  /// Runs a call between processes and translates its error.
  template <class Body>
  auto named(const Body&) const;

  Processes processes_;
};

}  // namespace gradlink::nccl

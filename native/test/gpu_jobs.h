// Ranks of a communicator over NCCL that are processes, each with a control communicator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nccl_support.h"
#include "shm/shm.h"

namespace gradlink::test {

using Body = std::function<std::string(nccl::NcclCommunicator&, int rank)>;

inline shm::JoinOptions controlOf(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "nccl-test-" + std::to_string(getppid());
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = 20000;
  return options;
}

/// Several ranks of a communicator, each a process on a GPU of its own.
inline std::vector<Process> startGpuRanks(int size, const Body& body, double timeoutMs = 20000,
                                          const std::function<Settings(int)>& settings = {}) {
  static int jobs = 0;
  const std::string name = "job-" + std::to_string(jobs++);
  std::vector<Process> ranks;
  for (int r = 0; r < size; ++r) {
    ranks.emplace_back(
        [&, r] {
          auto comm = nccl::join(shm::join(controlOf(name, r, size)), r, {.timeoutMs = timeoutMs});
          return body(*comm, r);
        },
        settings ? settings(r) : Settings{});
  }
  return ranks;
}

inline void expectNone(std::vector<Process>& ranks) {
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), "");
}

}  // namespace gradlink::test

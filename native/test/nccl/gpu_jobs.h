// Ranks of a communicator over NCCL that are processes, or threads of one, each with a control
// communicator.
#pragma once

#include <thread>

#include "shm/shm.h"
#include "test/nccl/support.h"

namespace gradlink::test {

/// No test waits it out: far above what its steps take under a sanitizer beside other work.
constexpr double kCallTimeoutMs = 120000;

using Body = std::function<std::string(nccl::NcclCommunicator&, int rank)>;

inline shm::JoinOptions controlOf(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "nccl-test-" + std::to_string(getppid());
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = kCallTimeoutMs;
  return options;
}

/// Several ranks of a communicator, each a process on a GPU of its own.
inline std::vector<Process> startGpuRanks(int size, const Body& body,
                                          double timeoutMs = kCallTimeoutMs,
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

/// The same as threads of one process: "" or what the first that failed said.
inline Process startGpuThreads(int size, const Body& body, double timeoutMs = kCallTimeoutMs) {
  static int jobs = 0;
  const std::string name = "threads-" + std::to_string(jobs++);
  return Process([&] {
    std::vector<std::string> said(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        said[static_cast<std::size_t>(r)] = textOf([&] {
          shm::JoinOptions rendezvous = controlOf(name, r, size);
          rendezvous.threads = true;
          auto comm = nccl::join(shm::join(rendezvous), r, {.timeoutMs = timeoutMs});
          return body(*comm, r);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : said) {
      if (!one.empty()) return one;
    }
    return std::string();
  });
}

inline void expectNone(std::vector<Process> ranks) {
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), "");
}

}  // namespace gradlink::test

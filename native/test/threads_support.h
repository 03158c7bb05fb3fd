// Ranks as threads of the test's own process.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "shm/shm.h"
#include "test/shm/support.h"
#include "test/waiting.h"

namespace gradlink::test {

inline std::string freshName() {
  static std::atomic<int> next{0};
  return "threads-" + std::to_string(next++);
}

inline shm::JoinOptions optionsFor(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "test";
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.threads = true;
  options.timeoutMs = 20000;
  return options;
}

/// Runs body(rank) on a thread each and returns what each threw, if anything.
inline std::vector<std::optional<Error>> onThreads(int size, const std::function<void(int)>& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back(
        [&, r] { errors[static_cast<std::size_t>(r)] = errorOf([&] { body(r); }); });
  }
  for (auto& t : threads) t.join();
  return errors;
}

/// The same with a communicator.
inline std::vector<std::optional<Error>> onRanks(
    int size, const std::function<void(Communicator&, int)>& body) {
  const std::string name = freshName();
  return onThreads(size, [&](int rank) {
    auto comm = shm::join(optionsFor(name, rank, size));
    body(*comm, rank);
  });
}

/// The same for what takes the communicator over.
inline std::vector<std::optional<Error>> onRanksTaken(
    int size, const std::function<void(std::unique_ptr<Communicator>, int)>& body) {
  const std::string name = freshName();
  return onThreads(size, [&](int rank) { body(shm::join(optionsFor(name, rank, size)), rank); });
}

inline void expectNone(const std::vector<std::optional<Error>>& errors) {
  for (auto& error : errors) EXPECT_FALSE(error.has_value()) << error->what();
}

inline void expectAll(const std::vector<std::optional<Error>>& errors, ErrorCode code,
                      int rank = -2) {
  for (auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, code) << error->what();
    if (rank != -2) {
      EXPECT_EQ(error->rank, rank) << error->what();
    }
  }
}

}  // namespace gradlink::test

// Ranks as processes: a test forks them, and a child reports what went wrong through its exit
// status and a pipe.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "shm/rendezvous/secret.h"
#include "shm/shm.h"
#include "test/shm/support.h"
#include "test/waiting.h"

namespace gradlink::test {

inline std::string freshName() {
  static int next = 0;
  return "processes-" + std::to_string(getpid()) + "-" + std::to_string(next++);
}

inline shm::JoinOptions optionsFor(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "test";
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = 20000;
  return options;
}

/// Where the ranks of a rendezvous find one another, as the list of sockets shows it.
inline std::string shownAddress(const std::string& name, int number = 0) {
  const shm::RendezvousAddress address(optionsFor(name, 0, 1), number);
  const auto* value = reinterpret_cast<const sockaddr_un*>(address.get());
  return "@" +
         std::string(value->sun_path + 1, address.length() - offsetof(sockaddr_un, sun_path) - 1);
}

/// Sockets of a rendezvous: one that its leader listens at, and one more for each rank that has
/// found it.
inline int socketsOf(const std::string& name, int number = 0) {
  const std::string address = shownAddress(name, number);
  FILE* list = fopen("/proc/net/unix", "r");
  char line[512];
  int found = 0;
  while (fgets(line, sizeof(line), list) != nullptr)
    found += std::string(line).find(address) != std::string::npos ? 1 : 0;
  fclose(list);
  return found;
}

/// A forked rank. body returns "" or what is wrong.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      std::string text;
      try {
        text = body();
      } catch (const Error& error) {
        text = std::string("threw ") + gradlink::nameOf(error.code) + " rank " +
               std::to_string(error.rank) + ": " + error.what();
      }
      if (write(ends[1], text.data(), text.size()) < 0) _exit(3);
      // Not exit(): the parent's test framework would run its end twice.
      _exit(text.empty() ? 0 : 1);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  void kill() { ::kill(pid_, SIGKILL); }
  /// Returns when it no longer runs.
  void stop() {
    ::kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void goOn() { ::kill(pid_, SIGCONT); }
  /// What the child had to say; "killed" when a signal ended it.
  std::string wait() {
    std::string text;
    char buffer[512];
    ssize_t got;
    while ((got = read(pipe_, buffer, sizeof(buffer))) > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    close(pipe_);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL ? "killed" : "died of a signal";
    if (WEXITSTATUS(status) != 0 && text.empty())
      return "exit status " + std::to_string(WEXITSTATUS(status));
    return text;
  }

 private:
  pid_t pid_;
  int pipe_;
};

inline std::vector<std::string> onRanks(int size,
                                        const std::function<std::string(Communicator&, int)>& body,
                                        std::size_t slotBytes = 0) {
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < size; ++r) {
    children.emplace_back([&, r] {
      auto options = optionsFor(name, r, size);
      options.slotBytes = slotBytes;
      auto comm = shm::join(options);
      return body(*comm, r);
    });
  }
  std::vector<std::string> results;
  for (Child& child : children) results.push_back(child.wait());
  return results;
}

inline void expectNone(const std::vector<std::string>& results) {
  for (auto& result : results) EXPECT_EQ(result, "");
}

inline void expectThrew(const std::string& result, const std::string& code, int rank) {
  EXPECT_EQ(result.rfind("threw " + code + " rank " + std::to_string(rank) + ":", 0), 0u) << result;
}

inline std::string runAll(Communicator& comm, const std::vector<Case>& cases,
                          const RankBuffers::Allocate& allocate = nullptr) {
  for (const Case& c : cases) {
    if (std::string wrong = runRank(comm, c, allocate); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace gradlink::test

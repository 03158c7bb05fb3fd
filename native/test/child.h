// A forked process, which reports what went wrong through its exit status and a pipe.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "core/error.h"

namespace gradlink::test {

/// What body says, or the error that it threw.
inline std::string textOf(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return std::string("threw ") + gradlink::nameOf(error.code) + " rank " +
           std::to_string(error.rank) + ": " + error.what();
  } catch (const std::exception& error) {
    // It may not get to the test's frame, which is the parent's.
    return std::string("threw ") + error.what();
  }
}

class Child {
 public:
  /// body returns "" or what is wrong. Not exit(): the parent's test framework would run its end
  /// twice.
  explicit Child(const std::function<std::string()>& body, void (*leave)(int) = _exit) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const std::string text = textOf(body);
      if (write(ends[1], text.data(), text.size()) < 0) _exit(3);
      leave(text.empty() ? 0 : 1);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}
  ~Child() {
    if (pid_ > 0) {
      kill();
      wait();
    }
  }

  void kill() const { ::kill(pid_, SIGKILL); }
  /// Returns when it no longer runs.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void goOn() const { ::kill(pid_, SIGCONT); }

  /// What the child had to say; "killed" when a signal ended it.
  std::string wait() {
    std::string text;
    char buffer[512];
    ssize_t got;
    while ((got = read(pipe_, buffer, sizeof(buffer))) > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    close(pipe_);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    if (WIFSIGNALED(status)) {
      return WTERMSIG(status) == SIGKILL ? "killed"
                                         : "died of signal " + std::to_string(WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0 && text.empty())
      return "exit status " + std::to_string(WEXITSTATUS(status));
    return text;
  }

 private:
  pid_t pid_;
  int pipe_;
};

}  // namespace gradlink::test

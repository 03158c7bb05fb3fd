// Jobs of mpi_ranks under a real mpirun.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace gradlink::test {

/// One MPI of this machine.
struct Mpi {
  const char* flavour;
  /// The mpirun of this flavour; empty where there is none.
  std::string launcher;
  /// Why it cannot be used; empty when it can.
  std::string missing;
};

struct Outcome {
  int status = 0;
  std::string output;
};

/// Runs a shell command and collects what it prints on both outputs.
inline Outcome shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "cannot run " + command};
  std::array<char, 4096> buffer{};
  std::size_t got;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    outcome.output.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// GRADLINK_TEST_FOLDER is where the build put mpi_ranks and the shims.
inline const std::string kFolder = GRADLINK_TEST_FOLDER;

inline Mpi findMpi(const std::string& flavour) {
  const bool open = flavour == "openmpi";
  Mpi mpi{open ? "openmpi" : "mpich", {}, {}};
  for (const char* name : {open ? "mpirun.openmpi" : "mpirun.mpich", "mpirun"}) {
    const Outcome said = shell(std::string(name) + " --version");
    if (said.status != 0) continue;
    if ((said.output.find("Open MPI") != std::string::npos) != open) continue;
    mpi.launcher = name;
    break;
  }
  const std::string shim = kFolder + "/gradlink_" + flavour + ".so";
  if (mpi.launcher.empty()) {
    mpi.missing = "no mpirun of " + flavour + " here; install " + (open ? "openmpi-bin" : "mpich");
  } else if (access(shim.c_str(), R_OK) != 0) {
    mpi.missing = shim + " is not built; install " + (open ? "libopenmpi-dev" : "libmpich-dev");
  }
  return mpi;
}

inline const Mpi& mpiOf(const std::string& flavour) {
  static const Mpi openmpi = findMpi("openmpi");
  static const Mpi mpich = findMpi("mpich");
  // Processes that find each other by what their environment says.
  static const Mpi tcp{"tcp", {}, {}};
  return flavour == "tcp" ? tcp : flavour == "openmpi" ? openmpi : mpich;
}

/// A port that nobody has: the system's choice, given back.
inline int freePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(at);
  const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&at), length) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&at), &length) == 0;
  close(socket);
  return bound ? ntohs(at.sin_port) : 0;
}

/// A process a rank, under a shell that waits for all of them. Its status is the lowest of those
/// that failed: a rank that ends the job does so before the others notice.
inline std::string tcpJob(int ranks, const std::string& body, const std::string& variables) {
  std::string script = "status=0; pids=; for rank in";
  for (int rank = 0; rank < ranks; ++rank) script += " " + std::to_string(rank);
  script +=
      "; do env WORLD_SIZE=" + std::to_string(ranks) +
      " RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(freePort()) +
      " GRADLINK_JOB=secret " + variables + " " + kFolder + "/mpi_ranks " + body +
      " </dev/null & pids=\"$pids $!\"; done; "
      "for pid in $pids; do wait $pid; one=$?; "
      "if [ $one -ne 0 ] && { [ $status -eq 0 ] || [ $one -lt $status ]; }; then status=$one; fi; "
      "done; exit $status";
  return "sh -c '" + script + "'";
}

/// Runs `body` (a name and its arguments) on so many ranks; `variables` is "NAME=VALUE NAME=VALUE".
inline Outcome runJob(const std::string& flavour, int ranks, const std::string& body,
                      const std::string& variables = {}) {
  if (flavour == "tcp") return shell(tcpJob(ranks, body, variables));
  const Mpi& mpi = mpiOf(flavour);
  std::string command = "env " + variables + " OMPI_ALLOW_RUN_AS_ROOT=1 " +
                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
                        // What MPIs keep until the end is theirs.
                        "LSAN_OPTIONS=detect_leaks=0 ASAN_OPTIONS=detect_leaks=0 " + mpi.launcher;
  if (flavour == "openmpi") command += " --oversubscribe";
  return shell(command + " -n " + std::to_string(ranks) + " " + kFolder + "/mpi_ranks " + body +
               " </dev/null");
}

/// Tests for each MPI; one that is not here is skipped with its reason.
class EachMpi : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string& missing = mpiOf(GetParam()).missing;
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  Outcome job(int ranks, const std::string& body, const std::string& variables = {}) const {
    return runJob(GetParam(), ranks, body, variables);
  }
  void expectFine(int ranks, const std::string& body, const std::string& variables = {}) const {
    const Outcome outcome = job(ranks, body, variables);
    EXPECT_EQ(outcome.status, 0) << body << " on " << ranks << " ranks: " << outcome.output;
  }
};

}  // namespace gradlink::test

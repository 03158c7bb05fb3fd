// Which MPI is taken, and what is said where there is none.
#include <map>

#include "messages/mpi/loader.h"
#include "test/messages/jobs.h"

namespace gradlink::test {
namespace {

std::map<std::string, std::string> environment;
const char* fromMap(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

TEST(MpiLoader, TakesTheLaunchersMpi) {
  const auto choose = [](std::map<std::string, std::string> variables) {
    environment = std::move(variables);
    const messages::Choice choice = messages::chooseMpi(fromMap);
    return choice.what + " by " + choice.variable;
  };
  EXPECT_EQ(choose({}), " by ");
  EXPECT_EQ(choose({{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}}),
            "openmpi by OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(choose({{"PMI_RANK", "3"}}), "mpich by PMI_RANK");
  EXPECT_EQ(choose({{"PMIX_RANK", "3"}, {"SLURM_PROCID", "3"}}), "openmpi by PMIX_RANK");
  EXPECT_EQ(choose({{"GRADLINK_MPI", "mpich"}, {"OMPI_COMM_WORLD_RANK", "0"}}),
            "mpich by GRADLINK_MPI");
  EXPECT_EQ(choose({{"GRADLINK_MPI", ""}, {"PMI_RANK", "0"}}), "mpich by PMI_RANK");
}

// Each in a process of its own: what is loaded stays.
TEST(MpiLoader, SaysWhatItLookedFor) {
  const Outcome absent =
      shell("env GRADLINK_MPI=/nowhere/shim.so " + kFolder + "/mpi_ranks collectives short");
  EXPECT_EQ(absent.status, 7);
  for (const char* part :
       {"ERR_BACKEND_UNAVAILABLE", "/nowhere/shim.so", "GRADLINK_MPI", "libopenmpi-dev"}) {
    EXPECT_NE(absent.output.find(part), std::string::npos) << part << ": " << absent.output;
  }
  const Outcome unknown =
      shell("env GRADLINK_MPI=mpi9 " + kFolder + "/mpi_ranks collectives short");
  EXPECT_NE(unknown.output.find(kFolder + "/gradlink_mpi9.so"), std::string::npos)
      << unknown.output;
}

}  // namespace
}  // namespace gradlink::test

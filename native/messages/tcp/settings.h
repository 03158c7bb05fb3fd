// This process's place in a job that has no MPI: what torchrun and its like say of it.
#pragma once

#include <string>

namespace gradlink::messages::tcp {

/// The ports to choose from, both included; 0: any that the system gives.
struct PortRange {
  int first = 0;
  int last = 0;
};

struct Settings {
  int rank = 0;
  int size = 1;
  /// Where rank 0 listens: a name or an address of its host, and a port.
  std::string address = "127.0.0.1";
  int port = 0;
  /// The address of this host that listens and calls (GRADLINK_INTERFACE); empty: as the way to
  /// rank 0 goes.
  std::string own{};
  /// Where other ranks than 0 listen (GRADLINK_PORTS).
  PortRange ports{};
  /// What only processes of the job know; may be empty, and then proves nothing.
  std::string secret;
  /// Whether payloads of any length are sealed; where one rank says so, its connections are.
  bool sealsAll = false;
  /// After so many seconds without anything from a rank the system asks whether its host is there;
  /// 0: never.
  int keepAliveSeconds = 30;
};

/// What the job is said to be by the program; before the first join.
void set(const Settings&);
/// That, or else what RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GRADLINK_JOB say. Throws
/// invalidArgument.
Settings settings();

}  // namespace gradlink::messages::tcp

// This process's place in a job without MPI, as set by torchrun and the like.
#pragma once

#include <string>

namespace gradlink::messages::tcp {

/// The ports to choose from, both included; 0: any.
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
  /// This host's address to listen on and connect from (GRADLINK_INTERFACE); empty: by route.
  std::string own{};
  /// Where other ranks than 0 listen (GRADLINK_PORTS).
  PortRange ports{};
  /// The job's secret; an empty one proves nothing.
  std::string secret;
  /// Whether payloads of any length are sealed; one rank suffices for its connections.
  bool sealsAll = false;
  /// Seconds of silence before the system probes a rank's host; 0: never.
  int keepAliveSeconds = 30;
};

/// The program's settings; call before the first join.
void set(const Settings&);
/// Those of set(), or from RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GRADLINK_JOB. Throws
/// invalidArgument if they are incomplete or wrong.
Settings settings();

}  // namespace gradlink::messages::tcp

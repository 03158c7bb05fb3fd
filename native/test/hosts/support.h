// Several hosts in one process: every level is the embedded engine between threads.
#pragma once

#include "core/hosts/hierarchical.h"
#include "test/threads_support.h"

namespace gradlink::test {

/// The host of each rank.
using Layout = std::vector<int>;

inline Levels levelsOf(const std::string& name, int rank, const Layout& layout,
                       double timeoutMs = 20000) {
  const NodeMap map(layout, rank);
  const auto join = [&](const std::string& part, int partRank, int partSize) {
    // With its own time to come in: timeoutMs is for calls.
    return shm::join(optionsFor(name + part, partRank, partSize));
  };
  Levels levels;
  levels.world = join("/world", rank, map.size());
  levels.node = join("/node" + std::to_string(map.ownNode()), map.ownLocal(),
                     static_cast<int>(map.ownMembers().size()));
  if (map.leads()) levels.leaders = join("/leaders", map.ownNode(), map.nodes());
  levels.nodeOf = layout;
  levels.timeoutMs = timeoutMs;
  return levels;
}

/// Runs body on each rank of these hosts; what each threw.
inline std::vector<std::optional<Error>> onHosts(
    const Layout& layout, const std::function<void(Communicator&, int)>& body,
    double timeoutMs = 20000) {
  const std::string name = freshName();
  return onThreads(static_cast<int>(layout.size()), [&](int rank) {
    auto comm = overHosts(levelsOf(name, rank, layout, timeoutMs));
    body(*comm, rank);
  });
}

}  // namespace gradlink::test

#include "messages/hosts.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hosts/hierarchical.h"

namespace gradlink::messages {
namespace {

// Rank 0's secret of this rendezvous keeps strangers and other rendezvous of the name apart.
std::string agreeOnSecret(Communicator& world, const CallOptions& options) {
  std::array<std::uint32_t, 4> words{};
  if (world.heldRanks()[0] == 0 && getrandom(words.data(), sizeof(words), 0) != sizeof(words))
    throw systemError("join: no random numbers from the system", errno);
  const void* const in[] = {words.data()};
  void* const out[] = {words.data()};
  world.broadcast({in, out}, words.size(), DType::uint32, 0, options);
  char text[33];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", words[0], words[1], words[2], words[3]);
  return text;
}

}  // namespace

std::unique_ptr<Communicator> joinOverHosts(const JoinOptions& options, const HostJoin& joinHost) {
  std::unique_ptr<MpiCommunicator> world = join(options);
  const NodeMap map(world->nodes(), world->heldRanks()[0]);
  if (map.widest() == 1) return world;
  Levels levels;
  levels.timeoutMs = options.timeoutMs;
  levels.nodeOf = world->nodes();
  const std::string secret = agreeOnSecret(*world, {});
  if (map.nodes() > 1) levels.leaders = world->split(map.leads() ? 0 : -1, map.rank());
  levels.node =
      joinHost(secret, options.name + " of host " + std::to_string(map.ownNode()), map.ownLocal(),
               static_cast<int>(map.ownMembers().size()), options.timeoutMs);
  levels.world = std::move(world);
  return overHosts(std::move(levels));
}

}  // namespace gradlink::messages

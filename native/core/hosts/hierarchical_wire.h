// A wire over several hosts: shared memory within the host, messages to the others.
#pragma once

#include <memory>

#include "core/hosts/node_map.h"
#include "core/wire.h"

namespace gradlink {

/// `inside` joins the ranks of this host in world order; `across` joins all.
std::unique_ptr<Wire> makeHierarchicalWire(std::unique_ptr<Wire> inside,
                                           std::unique_ptr<Wire> across, const NodeMap& map);

}  // namespace gradlink

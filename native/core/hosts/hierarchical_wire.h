// One wire over several hosts: memory is shared with the ranks of one's own host, the others get
// messages.
#pragma once

#include <memory>

#include "core/hosts/node_map.h"
#include "core/wire.h"

namespace gradlink {

/// `inside` joins the ranks of this host, in their order; `across` joins all.
std::unique_ptr<Wire> makeHierarchicalWire(std::unique_ptr<Wire> inside,
                                           std::unique_ptr<Wire> across, const NodeMap& map);

}  // namespace gradlink

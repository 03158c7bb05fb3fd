// Files of optimizer states from several servers.
//
// FILE is a manifest: text that lists one part for each server (FILE.CHECKSUM-0of2 and so on) with
// length and checksum, and ends in its own checksum. A part is saveStates() of a server's shards; a
// key's shards continue from part to part. Parts are named by content and written before the
// manifest is replaced, so FILE always leads to a complete set. Then the old manifest's parts are
// removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvstore/optimizer/optimizer.h"
#include "kvstore/worker/placement.h"

namespace gradlink::dist {

/// `parts`: each server's answer. Throws Error(system).
void writeStateParts(const std::string& file, std::span<const std::vector<std::uint8_t>> parts);

/// All keys' whole states, from a manifest and its parts or from a single-process store's file.
/// Throws Error(system), or Error(invalidArgument) if something is missing, truncated or altered.
LoadedStates readStateParts(const std::string& file);

/// The states that a server with these shards loads, in saveStates()'s format.
struct StateOfKey {
  const OptimizerState* state;
  std::span<const Shard> shards;
};
std::vector<std::uint8_t> statesFor(int server, const Optimizer& optimizer,
                                    std::span<const StateOfKey> states, bool withOptimizer);

}  // namespace gradlink::dist

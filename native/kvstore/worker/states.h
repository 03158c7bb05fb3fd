// States of optimizers that live on several servers, as files.
//
// FILE is a manifest: text that names one part for each server, FILE.CHECKSUM-0of2 and so on, each
// with its length and checksum, and ends in its own checksum. A part is what saveStates() makes of
// a server's shards; a key's shards follow one another from part to part. Parts are named by what
// they hold and written before the manifest replaces the old one, so that whatever happens FILE
// leads to a whole set. Only then are the parts of the old one removed.
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

/// `parts`: what each server answered. Throws Error(system).
void writeStateParts(const std::string& file, std::span<const std::vector<std::uint8_t>> parts);

/// The whole states of every key, from a manifest and its parts or from the one file that a store
/// of one process has written. Throws Error(system), Error(invalidArgument) where something is
/// missing, cut short or altered.
LoadedStates readStateParts(const std::string& file);

/// What a server with these shards of the keys loads: the same as saveStates() makes.
struct StateOfKey {
  const OptimizerState* state;
  std::span<const Shard> shards;
};
std::vector<std::uint8_t> statesFor(int server, const Optimizer& optimizer,
                                    std::span<const StateOfKey> states, bool withOptimizer);

}  // namespace gradlink::dist

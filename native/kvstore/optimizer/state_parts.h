// States of a key whose elements are stepped in several places, each of which keeps a part.
#pragma once

#include <cstddef>

#include "kvstore/optimizer/optimizer.h"

namespace gradlink {

/// Adds the elements behind those that `whole` has. Throws Error(invalidArgument) where the two are
/// of different optimizers or types.
void appendState(OptimizerState& whole, const OptimizerState& next);

/// The state of the elements [first, first + count). Of an array with one number a row, whole rows.
OptimizerState cutState(const OptimizerState& whole, std::size_t first, std::size_t count);

}  // namespace gradlink

// States of a key whose elements are stepped in several places, each with a part.
#pragma once

#include <cstddef>

#include "kvstore/optimizer/optimizer.h"

namespace gradlink {

/// Appends the elements of `next`. Throws Error(invalidArgument) for other optimizers or types.
void appendState(OptimizerState& whole, const OptimizerState& next);

/// The state of elements [first, first + count); for arrays with one number a row, of whole rows.
OptimizerState cutState(const OptimizerState& whole, std::size_t first, std::size_t count);

}  // namespace gradlink

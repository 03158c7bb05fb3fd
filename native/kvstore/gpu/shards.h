// Keys of a store on GPUs that are cut: each GPU has a part of the value, steps it, and keeps what
// the optimizer has for it. A part is a key of its own to everybody but the store, which splits
// operations into those of the parts.
#pragma once

#include <cstddef>

#include "kvstore/gpu/key.h"

namespace gradlink {

/// Cuts the key into equal parts, one a place, and a part for what is left over. Not where a part
/// would have less than so many bytes, or there is one place: then the key has no parts.
void cutKey(GpuKey& key, std::size_t places, std::size_t leastBytes);

/// Adds the operation, or, of a key that is cut, one for each of its parts.
void addInParts(GpuOperation operation, GpuOperations& to);

}  // namespace gradlink

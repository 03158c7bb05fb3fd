// Keys of a store on GPUs that are cut: each GPU has a part of the value, steps it, and keeps what
// the optimizer has for it. A part is a key of its own to everybody but the store, which says when
// a key is cut, and the engine, which takes the operations of the parts for one of a cut key.
#pragma once

#include <cstddef>

#include "kvstore/gpu/key.h"
#include "kvstore/gpu/places.h"

namespace gradlink {

/// Gives the key equal parts, one a place, and a part for what is left over. Not where a part
/// would have less than so many bytes, or there is one place: then the key has no parts.
void addParts(GpuKey& key, std::size_t places, std::size_t leastBytes);

/// Of a key with parts, what the operation comes to while the key is cut.
void addInParts(GpuOperation& operation);

/// Memory for the values of the parts, each on its place. Throws where there is none, with nothing
/// changed.
void makePartsRoom(GpuKey& key, GpuPlaces& places);

/// Moves the value, and what compression keeps, from the key to its parts, or back. Nothing of the
/// key may be under way. Throws with nothing changed. `written`: whether there is a value.
void cutValue(GpuKey& key, GpuPlaces& places, bool written);
void joinValue(GpuKey& key, GpuPlaces& places);

}  // namespace gradlink

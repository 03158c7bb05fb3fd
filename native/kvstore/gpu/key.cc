#include "kvstore/gpu/key.h"

#include <utility>

namespace gradlink {

void GpuUnit::addRowsUp() {
  std::vector<SomeRows> parts;
  parts.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    parts.push_back({in[i].data, head().operation.inRows[i]});
  }
  touched = sumRows(parts, key.rowLength, key.dtype);
}

void GpuUnit::spread() {
  inFull = AlignedBuffer(key.bytes());
  spreadRows(touched, key.rowLength * sizeOf(key.dtype), inFull.data(), key.bytes());
  in = {{inFull.data(), kHostPlace}};
}

}  // namespace gradlink

#include "kvstore/gpu/key.h"

namespace gradlink {

void GpuUnit::gatherRows() {
  std::vector<SomeRows> parts;
  parts.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    parts.push_back({in[i].data, head().operation->inRows[i]});
  }
  SortedRows sum = sumRows(parts, key().rowLength, Partial::none(key().dtype));
  if (isLazy()) {
    touched = std::move(sum);
    return;
  }
  void* const whole = key().room(0);
  spreadRows(sum, key().rowLength, whole, key().count);
  gathered = {whole, kHostPlace};
  in = {&gathered, 1};
}

}  // namespace gradlink

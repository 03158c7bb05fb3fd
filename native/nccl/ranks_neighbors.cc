#include "nccl/ranks.h"

namespace gradlink::nccl {

void Ranks::neighborAllReduce(const Buffers&, std::size_t, DType, std::span<const Neighborhood>,
                              const CallOptions&) {
  throw cannot("neighborAllReduce", "weighted sums are not made on GPUs");
}

}  // namespace gradlink::nccl

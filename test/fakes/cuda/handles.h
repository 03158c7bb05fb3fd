// Streams by the handles that the driver's functions are called with.
#pragma once

#include <memory>

#include "cuda/context.h"

namespace gradlink::fake {

/// The current context's own stream for the null handle; null for a handle that is none.
std::shared_ptr<Stream> streamOf(StreamHandle handle);

}  // namespace gradlink::fake

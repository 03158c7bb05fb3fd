// Communicators whose arrays are on a GPU, made of ones whose arrays are in the host's memory.
#pragma once

#include <memory>

#include "core/forwarding_communicator.h"
#include "cuda/device.h"

namespace gradlink::cuda {

/// Every call copies its input into page-locked memory, makes the call of the inner communicator
/// there, and copies what it gave back to the GPU. Long messages go as they are where the inner
/// communicator takes them.
class StagedCommunicator : public ForwardingCommunicator {
 public:
  /// The GPU of the rank held.
  virtual const Device& device() const = 0;

 protected:
  using ForwardingCommunicator::ForwardingCommunicator;
};

/// `inner` holds one rank; nothing else may use it. All buffers of the calls are memory of this
/// device. Sums of 8-bit floats, and memory that ranks share, are ERR_UNSUPPORTED.
std::unique_ptr<StagedCommunicator> stageThroughHost(std::unique_ptr<Communicator> inner, Device&);

}  // namespace gradlink::cuda

// Communicators for arrays on a GPU, over communicators for host memory.
#pragma once

#include <memory>

#include "core/forwarding_communicator.h"
#include "cuda/device.h"

namespace gradlink::cuda {

/// Every call copies its input to page-locked memory, runs the inner communicator there, and copies
/// the result to the GPU. Long messages skip the copies if the inner one accepts device memory.
class StagedCommunicator : public ForwardingCommunicator {
 public:
  virtual const Device& device() const = 0;

 protected:
  using ForwardingCommunicator::ForwardingCommunicator;
};

/// `inner` holds one rank and serves nothing else. All buffers are memory of this device. Sums of
/// 8-bit floats and memory shared by ranks are ERR_UNSUPPORTED.
std::unique_ptr<StagedCommunicator> stageThroughHost(std::unique_ptr<Communicator> inner, Device&);

}  // namespace gradlink::cuda

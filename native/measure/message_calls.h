// The cases of nccl-tests that are not NCCL collectives: their messages, also in host memory.
#pragma once

#include <cstddef>

#include "core/communicator.h"
#include "nccl/message.h"

namespace gradlink::measure {

/// Elements between two ranks in alltoallv, more over greater distances. `count`: of an even part.
std::size_t partOf(int from, int to, std::size_t count, DType dtype, int n);
/// The part's offset in the sender's input and in the receiver's output.
std::size_t partSource(int from, int to, std::size_t count, DType dtype, int n);
std::size_t partTarget(int from, int to, std::size_t count, DType dtype, int n);

MessageSteps ringMessages(std::size_t count, DType, int n);
MessageSteps partMessages(std::size_t count, DType, int n);
/// An all-gather by doubling; n is a power of two.
MessageSteps cubeMessages(std::size_t count, DType, int n);

// For communicators that hold one rank.
void passRing(Communicator&, const Shape&, const Buffers&, const CallOptions&);
void passParts(Communicator&, const Shape&, const Buffers&, const CallOptions&);
void passCube(Communicator&, const Shape&, const Buffers&, const CallOptions&);

}  // namespace gradlink::measure

// The cases of nccl-tests that are no collective of NCCL's: what their messages are, and how they
// are made in the host's memory.
#pragma once

#include <cstddef>

#include "core/communicator.h"
#include "nccl/message.h"

namespace gradlink::measure {

/// Elements of the case alltoallv from one rank to another: more the farther apart they are, as
/// nccl-tests' pattern has it. `count`: of an even part.
std::size_t partOf(int from, int to, std::size_t count, DType dtype, int n);
/// Where that part begins in the sender's input, and in the receiver's output.
std::size_t partSource(int from, int to, std::size_t count, DType dtype, int n);
std::size_t partTarget(int from, int to, std::size_t count, DType dtype, int n);

MessageSteps ringMessages(std::size_t count, DType, int n);
MessageSteps partMessages(std::size_t count, DType, int n);
/// An all-gather by doubling; n is a power of two.
MessageSteps cubeMessages(std::size_t count, DType, int n);

// Of a communicator that holds one rank; parts of any.
void passRing(Communicator&, const Shape&, const Buffers&, const CallOptions&);
void passParts(Communicator&, const Shape&, const Buffers&, const CallOptions&);
void passCube(Communicator&, const Shape&, const Buffers&, const CallOptions&);

}  // namespace gradlink::measure

// Maps one rank's part of a collective to the library's functions.
#pragma once

#include "core/call.h"
#include "nccl/comms.h"

namespace gradlink::nccl {

struct RankCall {
  Shape shape;
  const void* in;
  void* out;
  /// The library's op: shape.op's, or that of a scaled sum.
  int op;
  cuda::StreamHandle stream;
};

/// Queues it, inside a group. Collectives that the library lacks are made of sends and receives.
/// Not for barrier, split and neighborAllReduce.
abi::Result queuePart(const Library&, const Comms::Member&, int size, const RankCall&);

/// Allocates the scratch memory of this shape, before others wait for this rank.
void reserveFor(const Comms::Member&, int size, const Shape&, cuda::StreamHandle);

/// Whether queuePart can use a function of the library.
bool hasFunction(const Library&, Kind);

}  // namespace gradlink::nccl

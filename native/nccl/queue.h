// What each collective is in the library's functions, for one rank.
#pragma once

#include "core/call.h"
#include "nccl/comms.h"

namespace gradlink::nccl {

/// One rank's part of a collective.
struct RankCall {
  Shape shape;
  const void* in;
  void* out;
  /// The library's number of the operation: shape.op's, or that of a scaled sum.
  int op;
  cuda::StreamHandle stream;
};

/// Queues it, inside a group. Collectives that the library does not have are made of its sends and
/// receives. Not for barrier, split and neighborAllReduce.
abi::Result queuePart(const Library&, const Comms::Member&, int size, const RankCall&);

/// Allocates what queuing this shape there needs of memory: before others wait for this rank.
void reserveFor(const Comms::Member&, int size, const Shape&, cuda::StreamHandle);

/// Whether the library has a function for it, which queuePart then takes.
bool hasFunction(const Library&, Kind);

}  // namespace gradlink::nccl

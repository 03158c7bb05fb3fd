// The number of wrong elements in a collective's outputs, and the first of them. Works for host
// memory and for GPUs, which only count.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/collective_loop.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// Calls call(held, part) for every defined part of every held rank's output.
template <class Call>
void eachPart(const Communicator& comm, const CollectiveOptions& options, Call call) {
  const CollectiveRecord& record = *options.collective;
  const Shape shape = record.shape(options.count, options.dtype, options.op, options.root);
  for (std::size_t held = 0; held < comm.heldRanks().size(); ++held) {
    const int rank = comm.heldRanks()[held];
    if (!record.receives(rank, options.root)) continue;
    for (std::size_t block = 0; block < record.outputBlocks(comm.size()); ++block) {
      call(held, record.segment(rank, block, shape, options.root, comm.size()));
    }
  }
}

/// The first wrong one of `count` elements, by bisection with countIn(from, count).
template <class CountIn>
std::size_t halveToFirst(std::size_t count, CountIn countIn) {
  std::size_t from = 0;
  while (count > 1) {
    const std::size_t half = count / 2;
    const bool inFirst = countIn(from, half) > 0;
    if (!inFirst) from += half;
    count = inFirst ? half : count - half;
  }
  return from;
}

/// The first wrong element of the held ranks; nothing if a second look finds none. `data` has
/// countIn(held, part, from, count) and bitsAt(held, index).
template <class Data>
std::optional<WrongElement> firstWrong(const Communicator& comm, const CollectiveOptions& options,
                                       const Pattern& pattern, Data& data) {
  std::optional<WrongElement> first;
  eachPart(comm, options, [&](std::size_t held, const Segment& part) {
    const auto countIn = [&](std::size_t from, std::size_t count) {
      return data.countIn(held, part, from, count);
    };
    if (first || countIn(0, part.count) == 0) return;
    const std::size_t at = halveToFirst(part.count, countIn);
    const BlockOrigin& origin = part.origin;
    const WrongElement found{
        comm.heldRanks()[held], part.begin + at, data.bitsAt(held, part.begin + at),
        origin.reducedRanks ? reductionBits(part.first + at, pattern, *origin.reducedRanks)
                            : inputBits(part.first + at, pattern, origin.rank)};
    if (found.got != found.expected) first = found;
  });
  return first;
}

}  // namespace gradlink::measure

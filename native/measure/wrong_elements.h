// Which elements of a collective's outputs are not what they must be: how many, and the first. The
// same for memory of the host and of GPUs, which only count.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/collective_loop.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// Calls call(held, part) with every part of every held rank's output that is defined.
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

/// The first of `count` elements that is wrong; countIn(from, count) counts those of a range, and
/// is asked about ever smaller halves.
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

/// Of the held ranks. `data` has countIn(held, part, from, count), and bitsAt(held, index) of one
/// element. Nothing where a second look finds all right.
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

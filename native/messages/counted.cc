// Collectives with counts: each rank sends its row of the table with the announcement if there is
// room. Then the parts go directly to their receivers.

#include "core/counted.h"
#include "core/kernels/copy_bytes.h"
#include "messages/rank_communicator.h"
#include "messages/stages.h"
#include "messages/tags.h"

namespace gradlink::messages {

void runCountedMoves(Link& link, const Call& call, const CountedTable& table, Wait& wait) {
  const std::size_t element = sizeOf(call.shape.dtype);
  const CountedPart& part = call.counted->parts.front();
  const auto* const in = static_cast<const std::byte*>(part.in);
  auto* const out = static_cast<std::byte*>(part.out);
  const int me = link.rank();
  Batch batch(link);
  for (int i = 1; i < link.size(); ++i) {
    const int from = (me + i) % link.size();
    const std::size_t bytes = table.sent(from, me) * element;
    if (bytes == 0) continue;
    batch.receive(out + table.outBegin(from, me) * element, bytes, from, kMoveTag);
  }
  for (int i = 1; i < link.size(); ++i) {
    const int to = (me - i + link.size()) % link.size();
    const std::size_t bytes = table.sent(me, to) * element;
    if (bytes > 0) batch.send(in + table.inBegin(me, to) * element, bytes, to, kMoveTag);
  }
  const std::size_t own = table.sent(me, me) * element;
  if (own > 0) {
    copyBytes(out + table.outBegin(me, me) * element, in + table.inBegin(me, me) * element, own);
  }
  batch.wait(wait);
}

void RankCommunicator::count(const Call& call, Wait& wait) {
  const CountedTable table(call, heldRanks(), size(),
                           [&](const void* own, void* all, std::size_t bytes) {
                             const std::span row(static_cast<const std::byte*>(own), bytes);
                             const bool fits = bytes <= agreement_.mostBytes();
                             agreement_.meet(call.shape, fits ? row : row.first(0), wait);
                             std::vector<std::vector<std::byte>> exchanged;
                             if (!fits) exchanged = agreement_.exchange(row, bytes, wait);
                             for (int r = 0; r < size(); ++r) {
                               const auto at = static_cast<std::size_t>(r);
                               const std::byte* const theirs =
                                   fits ? agreement_.payload(r).data() : exchanged[at].data();
                               copyBytes(static_cast<std::byte*>(all) + at * bytes, theirs, bytes);
                             }
                           });
  try {
    table.place(call, heldRanks());
  } catch (const std::exception& error) {
    if (size() > 1) abort(error.what());
    throw;
  }
  runCountedMoves(link_, call, table, wait);
}

}  // namespace gradlink::messages

// The ways a call's data goes once its ranks meet: with the announcement, in place, or staged.
#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "shm/joined.h"
#include "shm/neighbor_row.h"
#include "shm/shared_direct.h"

namespace gradlink::shm {

// The announcement carries the data: one meeting, and every rank computes its own result from what
// the others brought. The payload stays untouched until this rank's next call but one, when all
// others are done with it.
void Joined::oneShot(const Shape& shape, const Buffers& buffers, const Neighborhood* own,
                     std::size_t room, Patience& patience) {
  static_assert(neighborRowBytes(kMaxRanks) + kMostOneShotBytes <= Segment::kOneShotBytes);
  const std::size_t block = shape.count * sizeOf(shape.dtype);
  const std::size_t blocks = inBlocks(shape, size(), rank());
  const bool styled = room >= StagingStyles::kFewestBytes;
  StagingWork work = styled ? styles_.plan(shape, room) : StagingWork();
  const std::size_t row = own != nullptr ? neighborRowBytes(size()) : 0;
  const std::size_t whole = row + room;
  if (own != nullptr) writeNeighborRow(session_.nextPayload(whole), *own, size());
  if (blocks * block > 0) {
    void* const dst[] = {session_.nextPayload(whole) + row};
    work.timed(0, [&] { copyMany(dst, buffers.in[0], blocks * block, work.streaming()); });
  }
  const std::uint32_t call = session_.meetWithPayload(shape, patience);
  if (styled) styles_.met(shape, room, call);
  std::vector<WeightRow> weights;
  if (own != nullptr) {
    weights = resolveNeighborRows(size(), [&](int r) { return session_.payload(r, call, whole); });
  }
  if (shape.count == 0 || outBlocks(shape, size(), rank()) == 0) return styles_.spent(work);
  for (int r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    in_[at] = {r == rank() ? static_cast<const std::byte*>(buffers.in[0])
                           : session_.payload(r, call, whole) + row,
               shape.count, 0};
    out_[at] = {};
  }
  out_[static_cast<std::size_t>(rank())] = {static_cast<std::byte*>(buffers.out[0]), shape.count,
                                            0};
  work.timed(0, [&] { runDirect({shape, in_, out_, weights}, 0, shape.count); });
  styles_.spent(work);
}

// False where some buffer of the call is out of the others' reach: all ranks see the same
// references and agree.
bool Joined::direct(const Shape& shape, std::uint32_t call, std::span<const WeightRow> weights,
                    Patience& patience) {
  for (int r = 0; r < size(); ++r) {
    const BufferRef* refs = session_.refs(r, call);
    if (refs[0].region == BufferRef::kPrivate || refs[1].region == BufferRef::kPrivate)
      return false;
  }
  auto views = [&]() -> DirectCall {
    bool inPlace = true;
    try {
      for (int r = 0; r < size(); ++r) {
        const auto at = static_cast<std::size_t>(r);
        const BufferRef* refs = session_.refs(r, call);
        in_[at] = {regions_.resolve(refs[0]), shape.count, 0};
        out_[at] = {regions_.resolve(refs[1]), shape.count, 0};
        inPlace = inPlace && in_[at].base == out_[at].base;
      }
    } catch (const Error& error) {
      session_.end(error.code, rank(), nameOf(shape.kind), error.what());
    }
    return {shape, in_, out_, weights, !inPlace && wantsStreaming(shape, size())};
  };
  runSharedDirect(session_, shape, views, ++directCalls_, patience);
  return true;
}

void Joined::stage(const StagedCall& call, std::size_t bytes, std::uint32_t number,
                   Patience& patience) {
  StagingWork work;
  if (staged_.warm) {
    work = styles_.plan(call.shape, bytes);
    styles_.met(call.shape, bytes, number, StagedChunks(session_.segment(), call.shape).total);
  }
  if (call.shape.kind == Kind::allReduce) {
    runStagedAllReduce(session_, call, work, patience, staged_);
  } else {
    runStaged(session_, call, work, patience, staged_);
  }
  styles_.spent(work);
}

}  // namespace gradlink::shm

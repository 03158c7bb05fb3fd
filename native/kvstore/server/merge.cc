#include "kvstore/server/merge.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/deadline.h"
#include "core/kernels/copy_bytes.h"
#include "core/kernels/partial.h"
#include "kvstore/protocol/piece_rows.h"

namespace gradlink::dist {
namespace {

using Clock = Deadline::Clock;

// Smaller values stay cached on both sides with any stores.
constexpr std::size_t kFewestStreamedBytes = 2 << 10;
// Buffers kept for later pieces; concurrent pushes of a large key may need more.
constexpr std::size_t kMostSpare = 64;

bool arePlain(std::span<const PushedPiece> pieces) {
  return std::all_of(pieces.begin(), pieces.end(),
                     [](const PushedPiece& p) { return p.encoding == Encoding::plain; });
}

bool isOfSomeRows(const PushedPiece& piece) { return isOfRows(piece.encoding); }

PushedRuns rowsOf(const PushedPiece& piece, std::size_t count, DType dtype) {
  return *readPush(piece.data, piece.bytes, count, rowTypeOf(piece.encoding, dtype));
}

// The virtual address of element 0, if element `first` is at `data`.
const void* arrayOf(const void* data, std::size_t first, DType dtype) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(data) -
                                       first * sizeOf(dtype));
}

}  // namespace

void Merger::assign(void* to, std::span<const PushedPiece> pieces, std::size_t count, DType dtype,
                    const GradientCompression* compression) {
  const std::size_t bytes = count * sizeOf(dtype);
  const bool styled = bytes >= kFewestStreamedBytes;
  const bool streaming = styled && assignStyle_.streaming();
  const auto begin = Clock::now();
  pieces = whole(pieces, count, dtype);
  sum(to, pieces, count, dtype, compression, streaming);
  const double seconds = secondsSince(begin);
  merge_ += seconds;
  if (!styled) return;
  if (assignStyle_.measured()) {
    assignStyle_.record(streaming, static_cast<float>(seconds / static_cast<double>(bytes)));
  }
  assignStyle_.advance();
}

AlignedBuffer Merger::room(std::size_t bytes) {
  if (bytes != kPieceBytes || spare_.empty()) return AlignedBuffer(bytes);
  AlignedBuffer room = std::move(spare_.back());
  spare_.pop_back();
  return room;
}

void Merger::giveRoom(AlignedBuffer room) {
  if (room.size() == kPieceBytes && spare_.size() < kMostSpare) spare_.push_back(std::move(room));
}

std::span<const PushedPiece> Merger::whole(std::span<const PushedPiece> pieces, std::size_t count,
                                           DType dtype) {
  if (std::ranges::none_of(pieces, isOfSomeRows)) return pieces;
  whole_.assign(pieces.begin(), pieces.end());
  if (rooms_.size() < pieces.size()) rooms_.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!isOfSomeRows(pieces[i])) continue;
    const bool wider = pieces[i].encoding == Encoding::widerRows;
    const DType rowType = rowTypeOf(pieces[i].encoding, dtype);
    const std::size_t bytes = count * sizeOf(rowType);
    if (rooms_[i].size() < bytes) rooms_[i] = AlignedBuffer(std::max(bytes, kPieceBytes));
    std::memset(rooms_[i].data(), 0, bytes);
    scatter(rowsOf(pieces[i], count, dtype), rowType, rooms_[i].data());
    whole_[i] = {rooms_[i].data(), wider ? Encoding::wider : Encoding::plain, bytes};
  }
  return whole_;
}

void Merger::updateRows(UpdateRun& run, std::span<const PushedPiece> pieces, std::size_t first,
                        std::size_t count, DType dtype) {
  const std::size_t size = sizeOf(dtype);
  std::vector<ElementRun> touched;
  for (const PushedPiece& piece : pieces) {
    const PushedRuns read = rowsOf(piece, count, dtype);
    touched.insert(touched.end(), read.runs.begin(), read.runs.end());
  }
  if (touched.empty()) return;
  if (summed_.size() == 0) summed_ = AlignedBuffer(kPieceBytes);
  sum(summed_.data(), whole(pieces, count, dtype), count, dtype, nullptr, false);
  std::ranges::sort(touched, {}, &ElementRun::first);
  std::size_t done = 0;
  for (const ElementRun& one : touched) {
    // Rows that several workers pushed count once.
    const std::size_t from = std::max<std::size_t>(one.first, done);
    const std::size_t end = std::size_t{one.first} + one.count;
    if (from >= end) continue;
    run.runElements(static_cast<const std::byte*>(summed_.data()) + from * size, first + from,
                    end - from);
    done = end;
  }
}

void Merger::sum(void* to, std::span<const PushedPiece> pieces, std::size_t count, DType dtype,
                 const GradientCompression* compression, bool streaming) {
  void* const target[] = {to};
  sources_.resize(pieces.size());
  if (arePlain(pieces)) {
    for (std::size_t i = 0; i < pieces.size(); ++i) sources_[i] = pieces[i].data;
    reduceMany(target, sources_, count, dtype, ReduceOp::sum, streaming);
    return;
  }
  // Compressed pushes belong to float32 keys, wider ones to keys of halves. Block by block, so
  // decoded elements stay in the first-level cache.
  const bool half = isHalf(dtype);
  const Partial partial(dtype, ReduceOp::sum);
  const std::size_t room = (pieces.size() + 1) * kUpdateBlock * sizeof(float);
  if (decoded_.size() < room) decoded_ = AlignedBuffer(room);
  auto* const summed = static_cast<float*>(decoded_.data());
  for (std::size_t done = 0; done < count; done += kUpdateBlock) {
    const std::size_t part = std::min(kUpdateBlock, count - done);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      float* const block = summed + (i + 1) * kUpdateBlock;
      const auto* const bytes = static_cast<const std::uint8_t*>(pieces[i].data);
      sources_[i] = block;
      if (pieces[i].encoding == Encoding::wider ||
          (pieces[i].encoding == Encoding::plain && dtype == DType::float32)) {
        sources_[i] = bytes + done * sizeof(float);
      } else if (pieces[i].encoding == Encoding::plain) {
        partial.take(bytes + done * sizeOf(dtype), reinterpret_cast<std::byte*>(block), part);
      } else {
        compression->decompress(bytes + compression->compressedBytes(done), block, part);
      }
    }
    std::byte* const result = static_cast<std::byte*>(to) + done * sizeOf(dtype);
    void* const block[] = {half ? static_cast<void*>(summed) : result};
    reduceMany(block, sources_, part, DType::float32, ReduceOp::sum, streaming && !half);
    if (half) partial.finish(reinterpret_cast<std::byte*>(summed), result, part, 1);
  }
}

void Merger::update(UpdateRun& run, int phase, void* weight, std::span<const PushedPiece> pieces,
                    std::size_t first, std::size_t count, DType dtype,
                    const GradientCompression* compression) {
  const auto begin = Clock::now();
  if (run.takesElements() && std::ranges::all_of(pieces, isOfSomeRows)) {
    updateRows(run, pieces, first, count, dtype);
    update_ += secondsSince(begin);
    return;
  }
  pieces = whole(pieces, count, dtype);
  if (arePlain(pieces)) {
    sources_.resize(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      sources_[i] = arrayOf(pieces[i].data, first, dtype);
    }
  } else {
    if (summed_.size() == 0) summed_ = AlignedBuffer(kPieceBytes);
    sum(summed_.data(), pieces, count, dtype, compression, false);
    sources_.assign(1, arrayOf(summed_.data(), first, dtype));
    merge_ += secondsSince(begin);
  }
  const auto stepped = Clock::now();
  run.useGradients(sources_);
  const std::size_t bytes = count * sizeOf(dtype);
  const bool styled = phase + 1 == run.phases() && bytes >= kFewestStreamedBytes;
  const bool streaming = styled && updateStyle_.streaming();
  if (streaming) {
    updateAside(run, phase, weight, first, count, dtype);
  } else {
    run.runBlocks(phase, first / kUpdateBlock, (first + count + kUpdateBlock - 1) / kUpdateBlock);
  }
  const double seconds = secondsSince(stepped);
  update_ += seconds;
  if (!styled) return;
  if (updateStyle_.measured()) {
    updateStyle_.record(streaming, static_cast<float>(seconds / static_cast<double>(bytes)));
  }
  updateStyle_.advance();
}

// Steps the weights in a copy and streams them back: workers have read them last, and plain stores
// to such lines can be ten times slower (store_style.h).
void Merger::updateAside(UpdateRun& run, int phase, void* weight, std::size_t first,
                         std::size_t count, DType dtype) {
  const std::size_t size = sizeOf(dtype);
  if (aside_.size() == 0) aside_ = AlignedBuffer(kUpdateBlock * sizeof(double));
  void* const outputs[] = {weight};
  run.handOut(outputs);
  for (std::size_t done = 0; done < count; done += kUpdateBlock) {
    const std::size_t at = first + done;
    const std::size_t part = std::min(kUpdateBlock, count - done);
    copyBytes(aside_.data(), static_cast<const std::byte*>(weight) + at * size, part * size);
    run.useWeight(const_cast<void*>(arrayOf(aside_.data(), at, dtype)));
    run.runBlocks(phase, at / kUpdateBlock, at / kUpdateBlock + 1, true);
  }
  run.handOut({});
  run.useWeight(weight);
}

}  // namespace gradlink::dist

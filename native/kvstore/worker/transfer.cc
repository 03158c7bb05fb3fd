#include "kvstore/worker/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/partial.h"
#include "kvstore/base/rows.h"
#include "kvstore/store_checks.h"

namespace gradlink::dist {
namespace {

// Elements of a sum compressed at a time, in the first-level cache; a multiple of 32.
constexpr std::size_t kBlock = 2048;

template <class Pointer>
std::vector<Pointer> shifted(const std::vector<Pointer>& bases, std::size_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                  std::byte>;
  std::vector<Pointer> moved;
  moved.reserve(bases.size());
  for (const Pointer base : bases) moved.push_back(static_cast<Byte*>(base) + bytes);
  return moved;
}

}  // namespace

PieceCursor::PieceCursor(const std::vector<Shard>& shards, DType dtype)
    : shards_(shards), step_(pieceElements(dtype)) {
  for (const Shard& shard : shards) total_ += (shard.count + step_ - 1) / step_;
  find();
}

Piece PieceCursor::take() {
  const Piece piece = *next_;
  find();
  return piece;
}

void PieceCursor::find() {
  next_.reset();
  if (found_ == total_) return;
  while (!next_) {
    if (shard_ == shards_.size()) {
      shard_ = 0;
      ++piece_;
    }
    const Shard& shard = shards_[shard_++];
    const std::size_t offset = piece_ * step_;
    if (offset >= shard.count) continue;
    next_ = Piece{&shard, piece_, shard.first + offset, std::min(step_, shard.count - offset)};
  }
  ++found_;
}

Transfer::Transfer(DistKey& key, std::uint64_t request)
    : key_(key), request_(request), kind_(key.queue.front().kind), cursor_(key.shards, key.dtype) {
  Operation head = key.queue.take();
  inputs_ = std::move(head.in);
  rows_ = std::move(head.rows);
  compact_ = head.compact;
  const std::vector<std::vector<std::int64_t>> inRows = std::move(head.inRows);
  take(std::move(head));
  // The server sends each piece by itself once it has it. It does not answer an init.
  const bool carries = kind_ != OperationKind::init && carriesPulls(kind_);
  while (carries && key.queue.pullIsNext()) take(key.queue.take());
  sortEachOnce(rows_);
  if (isPush(kind_)) ++key.rounds;
  encoding_ = chooseEncoding();
  if (!inRows.empty()) sumInputs(inRows);
  const bool feedsBack = isCompressed() && key.compression->feedsBack();
  if (feedsBack && key.residual.size() == 0) key.residual = AlignedBuffer(key.bytes());
  if (feedsBack && !codesSay()) {
    encoding_ = Encoding::plain;
    spelledOut_ = true;
  }
  if (kind_ == OperationKind::rowSparsePull) {
    expectRows();
  } else if (wantsValue()) {
    valuesLeft_ = cursor_.total();
  }
}

/// The rows of all devices are summed before the push.
void Transfer::sumInputs(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<SomeRows> parts;
  for (std::size_t i = 0; i < inputs_.size(); ++i) parts.push_back({inputs_[i], rows[i]});
  SortedRows sum = sumRows(parts, key_.rowLength, Partial(key_.dtype, ReduceOp::sum));
  rows_ = std::move(sum.rows);
  rowData_ = std::move(sum.data);
  encoding_ = sum.dtype == key_.dtype ? Encoding::rows : Encoding::widerRows;
}

/// Only pieces with some of the rows are answered.
void Transfer::expectRows() {
  for (PieceCursor cursor(key_.shards, key_.dtype); cursor.next();) {
    if (!runsIn(cursor.take()).empty()) ++valuesLeft_;
  }
  if (compact_ || key_.count == 0) return;
  for (void* const output : outputs_) std::memset(output, 0, key_.bytes());
}

std::vector<RowRun> Transfer::runsIn(const Piece& piece) const {
  return runsOf(rows_, key_.rowLength, piece.first, piece.count);
}

bool Transfer::expects(const Piece& piece, std::size_t bytes) const {
  return kind_ != OperationKind::rowSparsePull ||
         bytes == elementsOf(runsIn(piece)) * sizeOf(key_.dtype);
}

void Transfer::take(Operation operation) {
  const OperationKind kind = operation.kind;
  outputs_.insert(outputs_.end(), operation.out.begin(), operation.out.end());
  const bool isDoneWhenRead = kind == OperationKind::push || kind == OperationKind::init;
  (isDoneWhenRead ? pushes_ : pulls_).push_back(std::move(operation.ticket));
}

/// Checks every device, which covers all sums but those that overflow.
bool Transfer::codesSay() const {
  return std::ranges::all_of(inputs_, [this](const void* input) {
    return key_.compression->codesSay(static_cast<const float*>(input), key_.count);
  });
}

Encoding Transfer::chooseEncoding() const {
  const bool severalHalves = isPush(kind_) && isHalf(key_.dtype) && inputs_.size() > 1;
  if (severalHalves) return Encoding::wider;
  if (!isPush(kind_) || key_.compression == nullptr) return Encoding::plain;
  switch (key_.compression->type()) {
    case CompressionType::twoBit:
      return Encoding::twoBit;
    case CompressionType::oneBit:
      return Encoding::oneBit;
    case CompressionType::float16:
      return Encoding::float16;
    case CompressionType::bfloat16:
      return Encoding::bfloat16;
  }
  return Encoding::plain;
}

Piece Transfer::pieceOf(const Header& header) const {
  // The shards of a key have consecutive numbers.
  const std::size_t index = header.shard - key_.shards.front().number;
  const std::size_t step = pieceElements(key_.dtype);
  if (index < key_.shards.size() && header.piece * step < key_.shards[index].count) {
    const Shard& shard = key_.shards[index];
    const std::size_t offset = header.piece * step;
    const Piece piece{&shard, header.piece, shard.first + offset,
                      std::min(step, shard.count - offset)};
    if (piece.count == header.count) return piece;
  }
  throw Error(ErrorCode::mismatch,
              "key " + key_.name + ": a server answered with shard " +
                  std::to_string(header.shard) + ", piece " + std::to_string(header.piece) +
                  " of " + std::to_string(header.count) + " elements, which it does not have");
}

std::size_t Transfer::wireBytes(const Piece& piece) const {
  if (isOfRows()) return pushBytes(runsIn(piece), rowTypeOf(encoding_, key_.dtype));
  if (encoding() == Encoding::wider) return piece.count * sizeof(float);
  if (isCompressed()) return key_.compression->compressedBytes(piece.count);
  return piece.count * sizeOf(key_.dtype);
}

const void* Transfer::plainArray() const {
  const bool plain = isPush(kind_) && encoding_ == Encoding::plain && inputs_.size() == 1;
  return plain && !spelledOut_ ? inputs_[0] : nullptr;
}

const void* Transfer::memoryOf(const Piece& piece) const {
  return static_cast<const std::byte*>(inputs_[0]) + piece.first * sizeOf(key_.dtype);
}

void Transfer::encode(const Piece& piece, void* to, bool streaming) const {
  const std::size_t size = sizeOf(key_.dtype);
  if (isOfRows()) {
    return writePush(runsIn(piece), rowData_.data(), rowTypeOf(encoding_, key_.dtype), to);
  }
  if (encoding() == Encoding::wider) {
    return Partial(key_.dtype, ReduceOp::sum)
        .sum(inputs_, piece.first, static_cast<std::byte*>(to), piece.count);
  }
  if (encoding() == Encoding::plain && !spelledOut_) {
    void* const target[] = {to};
    return reduceMany(target, shifted(inputs_, piece.first * size), piece.count, key_.dtype,
                      ReduceOp::sum, streaming);
  }
  const GradientCompression& compression = *key_.compression;
  auto* const residual = static_cast<float*>(key_.residual.data());
  alignas(64) float sum[kBlock];
  void* const target[] = {sum};
  for (std::size_t done = 0; done < piece.count; done += kBlock) {
    const std::size_t first = piece.first + done;
    const std::size_t count = std::min(kBlock, piece.count - done);
    const float* gradient = static_cast<const float*>(inputs_[0]) + first;
    if (inputs_.size() > 1) {
      reduceMany(target, shifted(inputs_, first * size), count, key_.dtype, ReduceOp::sum);
      gradient = sum;
    }
    if (spelledOut_) {
      compression.quantize(gradient, residual + first, static_cast<float*>(to) + done, count);
      continue;
    }
    compression.compress(gradient, compression.feedsBack() ? residual + first : nullptr,
                         static_cast<std::uint8_t*>(to) + compression.compressedBytes(done), count);
  }
}

void Transfer::deliver(const Piece& piece, const void* value, const ResultStores& results) const {
  if (kind_ == OperationKind::rowSparsePull) {
    return deliverRows(piece, static_cast<const std::byte*>(value));
  }
  const std::size_t size = sizeOf(key_.dtype);
  results.write(piece.count * size * outputs_.size(), [&](bool streaming) {
    copyMany(shifted(outputs_, piece.first * size), value, piece.count * size, streaming);
  });
}

/// Rows may begin or end in another piece.
void Transfer::deliverRows(const Piece& piece, const std::byte* value) const {
  const std::size_t size = sizeOf(key_.dtype);
  for (const auto& [run, at] : runsIn(piece)) {
    const std::size_t place = compact_ ? at : piece.first + run.first;
    for (void* const output : outputs_) {
      copyBytes(static_cast<std::byte*>(output) + place * size, value, run.count * size);
    }
    value += run.count * size;
  }
}

}  // namespace gradlink::dist

// One key of a distributed store at its worker, and its transfer: a push, pulls, or both, by
// pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/deadline.h"
#include "core/kernels/result_stores.h"
#include "core/memory/aligned_buffer.h"
#include "kvstore/base/compression.h"
#include "kvstore/key.h"
#include "kvstore/protocol/piece_rows.h"
#include "kvstore/protocol/protocol.h"
#include "kvstore/queue.h"
#include "kvstore/store.h"
#include "kvstore/worker/placement.h"

namespace gradlink::dist {

/// A piece of a shard. `first` counts from the start of the key.
struct Piece {
  const Shard* shard;
  std::uint32_t number;
  std::size_t first;
  std::size_t count;
};

/// Iterates over a key's pieces, one of each shard in turn, so all servers are busy from the start.
class PieceCursor {
 public:
  PieceCursor(const std::vector<Shard>& shards, DType dtype);
  /// Null at the end.
  const std::optional<Piece>& next() const { return next_; }
  Piece take();
  std::size_t total() const { return total_; }

 private:
  void find();

  const std::vector<Shard>& shards_;
  std::size_t step_;
  std::size_t total_ = 0;
  std::size_t found_ = 0;
  std::size_t shard_ = 0;
  std::uint32_t piece_ = 0;
  std::optional<Piece> next_;
};

class Transfer;

struct DistKey : Key {
  explicit DistKey(Key key) : Key(std::move(key)) {}

  // ---- fixed when it is defined
  std::vector<Shard> shards;
  /// Null: pushes are sent uncompressed.
  const GradientCompression* compression = nullptr;

  // ---- the engine's
  KeyQueue<Operation> queue;
  std::unique_ptr<Transfer> transfer;
  /// Pushes begun.
  std::uint64_t rounds = 0;
  /// Compression's residual, allocated by the first push.
  AlignedBuffer residual;
  /// The failure of a push whose ticket is done: reported by the next operation.
  std::exception_ptr error;
};

class Transfer {
 public:
  /// Takes the first operation of the key's queue and the pulls that can be merged with it.
  Transfer(DistKey& key, std::uint64_t request);

  DistKey& key() const { return key_; }
  std::uint64_t request() const { return request_; }
  OperationKind kind() const { return kind_; }
  bool sends() const {
    return kind_ != OperationKind::pull && kind_ != OperationKind::rowSparsePull;
  }
  bool wantsValue() const { return !pulls_.empty(); }

  const std::optional<Piece>& nextPiece() const { return cursor_.next(); }
  Piece takePiece() { return cursor_.take(); }
  bool allTaken() const { return !sends() || !cursor_.next(); }
  /// The piece of an answer. Throws Error(mismatch) for an invalid one.
  Piece pieceOf(const Header&) const;
  std::size_t wireBytes(const Piece&) const;
  Encoding encoding() const { return encoding_; }
  /// Writes a piece as it is sent: the devices' sum, maybe compressed. Parallel for other pieces.
  void encode(const Piece&, void* to, bool streaming) const;

  std::vector<RowRun> runsIn(const Piece&) const;
  /// For a pull of rows: whether the length of an answer is right.
  bool expects(const Piece&, std::size_t bytes) const;
  bool isOfRows() const { return dist::isOfRows(encoding_); }
  bool isCompressed() const {
    return encoding_ != Encoding::plain && encoding_ != Encoding::wider && !isOfRows();
  }
  bool codesSay() const;

  /// The single array that is sent unchanged, or null.
  const void* plainArray() const;
  /// From now on servers read plainArray() in place.
  void lend() { lends_ = true; }
  bool lends() const { return lends_; }
  const void* memoryOf(const Piece&) const;
  /// Pieces that servers may be reading.
  void pieceLent() { ++lentLeft_; }
  void pieceReturned() { --lentLeft_; }
  bool isLent() const { return lentLeft_ > 0; }

  /// Copies a piece of the stored value to its destinations. Thread-safe likewise.
  void deliver(const Piece&, const void* value, const ResultStores&) const;
  void delivered() { --valuesLeft_; }
  bool hasAllValues() const { return valuesLeft_ == 0; }

  /// Tickets that end when the arrays have been read, and when the values have come.
  std::vector<std::shared_ptr<Ticket>> pushes() { return std::move(pushes_); }
  std::vector<std::shared_ptr<Ticket>> pulls() { return std::move(pulls_); }

  /// When everything had been sent.
  Deadline::Clock::time_point sent;
  std::exception_ptr error;

 private:
  void take(Operation operation);
  Encoding chooseEncoding() const;
  void sumInputs(const std::vector<std::vector<std::int64_t>>& rows);
  void expectRows();
  void deliverRows(const Piece&, const std::byte* value) const;

  DistKey& key_;
  const std::uint64_t request_;
  OperationKind kind_;
  PieceCursor cursor_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  Encoding encoding_ = Encoding::plain;
  /// Sends values instead of codes: some element is NaN, which codes cannot express.
  bool spelledOut_ = false;
  std::vector<std::int64_t> rows_;  // sorted, each once
  AlignedBuffer rowData_;
  bool compact_ = false;
  std::vector<std::shared_ptr<Ticket>> pushes_;
  std::vector<std::shared_ptr<Ticket>> pulls_;
  std::size_t valuesLeft_ = 0;
  std::size_t lentLeft_ = 0;
  bool lends_ = false;
};

}  // namespace gradlink::dist

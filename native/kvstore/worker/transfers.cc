#include "kvstore/worker/transfers.h"

#include <algorithm>
#include <chrono>

#include "core/thread_pool.h"
#include "kvstore/store_checks.h"

namespace gradlink::dist {
namespace {

using Clock = Deadline::Clock;

// Bytes that the engine copies before it polls the wire again: some 50 us.
constexpr std::size_t kTurnBytes = 1 << 20;
// Below this, waking other threads does not pay.
constexpr std::size_t kWideBytes = 512 << 10;
// Shorter arrays are staged even if servers could read them in place: their push is done at once.
constexpr std::size_t kFewestLentBytes = 32 << 10;
// So are these if nothing else is pending: the submitter polls for the answer, while a receipt
// would wake the store's thread. Among others staging costs more (64 KiB alone 58 us, lent 105; a
// hundred of them 14.5 us each, lent 10; 2 cores of an EPYC Zen 5, November 2026).
constexpr std::size_t kMostAloneBytes = 256 << 10;
// The style of stores has no measurable effect below this.
constexpr std::size_t kFewestStyledBytes = 2 << 10;

/// Pieces copied in parallel. With two cores the servers need the other one.
std::size_t piecesAtOnce() {
  static const auto width = static_cast<std::size_t>(ThreadPool::shared().width());
  return width > 2 ? std::min<std::size_t>(width, 16) : 1;
}

}  // namespace

Transfers::Transfers(ServerLink& link, KeyOrder<DistKey>& order, std::size_t mostStagedBytes,
                     Finished& finished)
    : link_(link), finished_(finished), window_(mostStagedBytes), order_(order) {}

void Transfers::define(DistKey& key) {
  for (const Shard& shard : key.shards) keyOfShard_.emplace(shard.number, &key);
}

// ---- sending

void Transfers::sendSome() {
  if (blocked_) window_.look(Clock::now());
  blocked_ = false;
  std::size_t budget = kTurnBytes;
  while (!order_.empty() && !blocked_ && budget > 0) {
    DistKey& key = *order_.soonest();
    if (!key.transfer && !begin(key)) continue;
    Transfer& transfer = *key.transfer;
    if (transfer.sends()) {
      const std::size_t used = transfer.lends() ? lend(transfer) : stage(transfer, budget);
      budget -= std::min(budget, used);
      if (!transfer.allTaken()) continue;
    } else {
      askForValue(transfer);
      budget -= std::min(budget, sizeof(Header));
    }
    transfer.sent = Clock::now();
    order_.block(key);
    if (!transfer.isLent()) settleSent(transfer);
  }
}

/// Everything has been sent and read, so the arrays are the caller's again.
void Transfers::settleSent(Transfer& transfer) {
  if (transfer.hasAllValues() || transfer.error) {
    finish(transfer, transfer.error);
  } else {
    finishTickets(transfer.pushes(), nullptr);
  }
}

/// False if the key's first operation needs no server and is done.
bool Transfers::begin(DistKey& key) {
  const OperationKind kind = key.queue.front().kind;
  std::exception_ptr error;
  if (key.error) {
    error = std::exchange(key.error, nullptr);
  } else if (left_ && isPush(kind)) {
    error = std::make_exception_ptr(
        storeMisuse("key " + key.name + ": this worker has left the rounds, it can only pull"));
  }
  // Only worker 0's initial value counts.
  const bool local = key.shards.empty() || (kind == OperationKind::init && link_.rank() != 0);
  if (error || local) {
    finishFirst(key, error);
    return false;
  }
  key.transfer = std::make_unique<Transfer>(key, ++lastRequest_);
  if (key.transfer->wantsValue()) waiting_.emplace(lastRequest_, key.transfer.get());
  const bool alone = order_.unfinished() <= 1 && link_.buffers().stagedBytes() == 0;
  const std::size_t fewest = alone ? kMostAloneBytes + 1 : kFewestLentBytes;
  const void* const array = key.transfer->plainArray();
  if (array != nullptr && key.bytes() >= fewest && link_.owns(array, key.bytes())) {
    key.transfer->lend();
    lending_.emplace(lastRequest_, key.transfer.get());
  }
  return true;
}

void Transfers::askForRows(const Transfer& transfer) {
  const DistKey& key = transfer.key();
  const std::size_t step = pieceElements(key.dtype);
  for (const Shard& shard : key.shards) {
    std::vector<ShardRun> wanted;
    for (std::size_t first = 0; first < shard.count; first += step) {
      const Piece piece{&shard, 0, shard.first + first, std::min(step, shard.count - first)};
      for (const RowRun& one : transfer.runsIn(piece)) {
        wanted.push_back({first + one.run.first, one.run.count});
      }
    }
    if (wanted.empty()) continue;
    Header header{.type = MessageType::pullRows, .dtype = key.dtype, .shard = shard.number};
    header.count = shard.count;
    header.round = key.rounds;
    header.request = transfer.request();
    link_.send(shard.server, header,
               std::span(reinterpret_cast<const std::uint8_t*>(wanted.data()),
                         wanted.size() * sizeof(ShardRun)));
  }
}

void Transfers::askForValue(Transfer& transfer) {
  if (transfer.kind() == OperationKind::rowSparsePull) return askForRows(transfer);
  Header header{.type = MessageType::pull, .dtype = transfer.key().dtype};
  header.round = transfer.key().rounds;
  header.request = transfer.request();
  for (const Shard& shard : transfer.key().shards) {
    header.shard = shard.number;
    header.count = shard.count;
    link_.send(shard.server, header);
  }
}

/// Announces pieces in place, as many as the window allows. Returns their bytes.
std::size_t Transfers::lend(Transfer& transfer) {
  Header header = pushHeader(transfer);
  header.flags |= kLent;
  std::size_t used = 0;
  while (!transfer.allTaken()) {
    const std::size_t bytes = transfer.wireBytes(*transfer.nextPiece());
    if (!window_.takes(bytes, link_.buffers().stagedBytes())) {
      blocked_ = true;
      break;
    }
    const Piece piece = transfer.takePiece();
    WireBuffer* const buffer =
        link_.buffers().lend(transfer.memoryOf(piece), bytes, transfer.request());
    transfer.pieceLent();
    header.shard = piece.shard->number;
    header.piece = piece.number;
    header.count = piece.count;
    link_.send(piece.shard->server, header, buffer, bytes);
    used += sizeof header;
  }
  if (used > 0) window_.staged(Clock::now());
  return used;
}

/// Sends pieces until budget or window are exhausted, or none is left. Returns the bytes read.
std::size_t Transfers::stage(Transfer& transfer, std::size_t budget) {
  const std::size_t most = piecesAtOnce();
  std::size_t used = 0;
  while (used < budget && !blocked_ && !transfer.allTaken()) {
    outgoing_.clear();
    while (outgoing_.size() < most && !transfer.allTaken()) {
      const std::size_t bytes = transfer.wireBytes(*transfer.nextPiece());
      if (!window_.takes(bytes, link_.buffers().stagedBytes())) {
        blocked_ = true;
        break;
      }
      WireBuffer* const buffer = link_.buffers().take(bytes, true);
      outgoing_.push_back({transfer.takePiece(), buffer, bytes});
      used +=
          transfer.isOfRows() ? bytes : outgoing_.back().piece.count * sizeOf(transfer.key().dtype);
    }
    if (outgoing_.empty()) break;
    encodeAll(transfer);
    sendAll(transfer);
  }
  return used;
}

void Transfers::encodeAll(Transfer& transfer) {
  std::size_t bytes = 0;
  for (const Outgoing& out : outgoing_) bytes += out.bytes;
  const bool styled = bytes >= kFewestStyledBytes && transfer.encoding() == Encoding::plain;
  const bool streaming = styled && style_.streaming();
  const auto encode = [&](std::size_t i) {
    transfer.encode(outgoing_[i].piece, outgoing_[i].buffer->memory, streaming);
  };
  const Clock::time_point begun = Clock::now();
  if (outgoing_.size() > 1 && bytes >= kWideBytes) {
    ThreadPool::shared().parallel(outgoing_.size(), encode);
  } else {
    for (std::size_t i = 0; i < outgoing_.size(); ++i) encode(i);
  }
  const double seconds = secondsSince(begun);
  copySeconds_ += seconds;
  if (!styled) return;
  if (style_.measured()) {
    style_.record(streaming, static_cast<float>(seconds / static_cast<double>(bytes)));
  }
  style_.advance();
}

Header Transfers::pushHeader(const Transfer& transfer) const {
  Header header{
      .type = transfer.kind() == OperationKind::init ? MessageType::init : MessageType::push,
      .encoding = transfer.encoding(),
      .dtype = transfer.key().dtype,
      .flags = transfer.wantsValue() ? kWantsValue : std::uint8_t{0}};
  header.round = transfer.key().rounds;
  header.request = transfer.request();
  return header;
}

void Transfers::sendAll(Transfer& transfer) {
  Header header = pushHeader(transfer);
  for (const Outgoing& out : outgoing_) {
    header.shard = out.piece.shard->number;
    header.piece = out.piece.number;
    header.count = out.piece.count;
    link_.send(out.piece.shard->server, header, out.buffer, out.bytes);
  }
  window_.staged(Clock::now());
}

void Transfers::released(WireBuffer* buffer) {
  const std::uint64_t lender = buffer->lender;
  link_.buffers().give(buffer);
  if (lender != 0) returned(lender);
  window_.released(link_.buffers().stagedBytes(), Clock::now());
  blocked_ = false;
}

void Transfers::returned(std::uint64_t request) {
  const auto found = lending_.find(request);
  if (found == lending_.end()) return;
  Transfer& transfer = *found->second;
  transfer.pieceReturned();
  if (transfer.allTaken() && !transfer.isLent()) settleSent(transfer);
}

Deadline Transfers::nextLook() const {
  if (!blocked_) return Deadline::never();
  const std::chrono::duration<double, std::milli> left = window_.timeoutEnds() - Clock::now();
  return Deadline::in(std::max(0.0, left.count()));
}

// ---- answers

void Transfers::value(const Header& header, const WireMessage& message) {
  const auto found = waiting_.find(header.request);
  if (found == waiting_.end()) {
    link_.release(message);
    return;
  }
  try {
    const Piece piece = found->second->pieceOf(header);
    if (!found->second->expects(piece, message.bytes)) {
      throw Error(ErrorCode::mismatch, "key " + found->second->key().name +
                                           ": a server answered with other rows than requested");
    }
    incoming_.push_back({found->second, piece, message});
  } catch (...) {
    link_.release(message);
    throw;
  }
}

void Transfers::settle() {
  if (incoming_.empty()) return;
  std::size_t bytes = 0;
  for (const Incoming& in : incoming_) bytes += in.message.bytes;
  const auto deliver = [&](std::size_t i) {
    const Incoming& in = incoming_[i];
    in.transfer->deliver(in.piece, in.message.payload, results_);
    link_.release(in.message);
  };
  const Clock::time_point begun = Clock::now();
  if (incoming_.size() > 1 && bytes >= kWideBytes && piecesAtOnce() > 1) {
    ThreadPool::shared().parallel(incoming_.size(), deliver);
  } else {
    for (std::size_t i = 0; i < incoming_.size(); ++i) deliver(i);
  }
  copySeconds_ += secondsSince(begun);
  for (const Incoming& in : incoming_) {
    in.transfer->delivered();
    if (!in.transfer->hasAllValues() || !in.transfer->allTaken() || in.transfer->isLent()) continue;
    finish(*in.transfer, in.transfer->error);
  }
  incoming_.clear();
}

void Transfers::failed(const Header& header, const std::exception_ptr& error) {
  settle();
  const auto found = waiting_.find(header.request);
  if (found == waiting_.end()) {
    // For a push that is done: its key's next operation reports it.
    const auto key = keyOfShard_.find(header.shard);
    if (key != keyOfShard_.end() && !key->second->error) key->second->error = error;
    return;
  }
  Transfer& transfer = *found->second;
  if (!transfer.error) transfer.error = error;
  waiting_.erase(found);
  // The rest of a failed push is still sent, for the round that the others wait for.
  if (transfer.allTaken() && !transfer.isLent()) finish(transfer, transfer.error);
}

const Transfer* Transfers::oldest() const {
  const Transfer* oldest = nullptr;
  for (const auto& [request, transfer] : waiting_) {
    if (!transfer->allTaken() && transfer->sends()) continue;
    if (oldest == nullptr || transfer->sent < oldest->sent) oldest = transfer;
  }
  for (const auto& [request, transfer] : lending_) {
    if (!transfer->allTaken() || !transfer->isLent()) continue;
    if (oldest == nullptr || transfer->sent < oldest->sent) oldest = transfer;
  }
  return oldest;
}

// ---- finished operations

void Transfers::finishFirst(DistKey& key, const std::exception_ptr& error) {
  finishTickets({key.queue.take().ticket}, error);
  order_.unlist(key);
  order_.list(key);
}

void Transfers::finish(Transfer& transfer, const std::exception_ptr& error) {
  DistKey& key = transfer.key();
  finishTickets(transfer.pushes(), error);
  finishTickets(transfer.pulls(), error);
  waiting_.erase(transfer.request());
  lending_.erase(transfer.request());
  key.transfer.reset();
  order_.unlist(key);
  order_.release(key);
}

void Transfers::finishTickets(std::vector<std::shared_ptr<Ticket>> tickets,
                              const std::exception_ptr& error) {
  order_.ended(tickets.size());
  for (auto& ticket : tickets) finished_.emplace_back(std::move(ticket), error);
}

void Transfers::failAll(std::span<DistKey* const> keys, const std::exception_ptr& error) {
  for (const Incoming& in : incoming_) link_.release(in.message);
  incoming_.clear();
  for (DistKey* const key : keys) {
    if (key->transfer) finish(*key->transfer, error);
    while (!key->queue.empty()) finishFirst(*key, error);
  }
  waiting_.clear();
}

}  // namespace gradlink::dist

#include "kvstore/server/shard.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/store_checks.h"

namespace gradlink::dist {
namespace {

// A push that waits this long is copied and released: a worker's staging memory is limited, and two
// workers that push many keys in different orders would otherwise deadlock.
constexpr std::chrono::milliseconds kCopyAfter(100);

constexpr int kEverybody = -1;

Error mismatch(const std::string& text) { return Error(ErrorCode::mismatch, text); }

std::string countOfRounds(std::uint64_t rounds) {
  return std::to_string(rounds) + (rounds == 1 ? " time" : " times");
}

}  // namespace

ServerShard::ServerShard(ServerContext& context, Merger& merger, const Header& definition,
                         std::string name, void* value)
    : context_(context),
      merger_(merger),
      number_(definition.shard),
      name_(std::move(name)),
      dtype_(definition.dtype),
      count_(definition.count),
      first_(definition.round),
      rowLength_(definition.request),
      traceKey_(context.trace == nullptr ? 0 : context.trace->keyNumber(name_)),
      flags_(definition.flags),
      step_(pieceElements(dtype_)),
      value_(static_cast<std::byte*>(value)),
      pieces_((count_ + step_ - 1) / step_) {
  if (!context.asynchronous) return;
  for (ShardPiece& piece : pieces_) piece.applied.resize(static_cast<std::size_t>(context.workers));
}

bool ServerShard::agreesWith(const Header& definition, const std::string& name) const {
  return definition.count == count_ && definition.dtype == dtype_ && definition.flags == flags_ &&
         definition.round == first_ && definition.request == rowLength_ && name == name_;
}

std::size_t ServerShard::wireBytes(const Header& header) const {
  if (header.encoding == Encoding::plain) return header.count * sizeOf(dtype_);
  if (header.encoding == Encoding::wider && isHalf(dtype_)) return header.count * sizeof(float);
  const GradientCompression* const agreed = compression();
  const auto type = static_cast<int>(header.encoding) - 1;
  if (agreed == nullptr || static_cast<int>(agreed->type()) != type || dtype_ != DType::float32) {
    throw mismatch("key " + name_ + ": a push came in a compression that was not agreed on");
  }
  return agreed->compressedBytes(header.count);
}

bool ServerShard::hasRightSize(const Header& header, const WireMessage& message) const {
  if (!isOfRows(header.encoding)) return message.bytes == wireBytes(header);
  if (header.type != MessageType::push) return false;
  if (header.encoding == Encoding::widerRows && !isHalf(dtype_)) return false;
  const DType rowType = rowTypeOf(header.encoding, dtype_);
  return readPush(message.payload, message.bytes, header.count, rowType).has_value();
}

void ServerShard::check(const Header& header, const WireMessage& message) const {
  if (header.piece >= pieces_.size() || header.count != countOf(header.piece) ||
      header.dtype != dtype_ || message.payload == nullptr || !hasRightSize(header, message)) {
    throw mismatch("key " + name_ + ": what worker " + std::to_string(message.source) +
                   " sent is not a piece of its " + std::to_string(count_) + " elements of " +
                   nameOf(dtype_));
  }
}

void ServerShard::init(const Header& header, const WireMessage& message) {
  check(header, message);
  ShardPiece& piece = pieces_[header.piece];
  copyBytes(valueOf(header.piece), message.payload, message.bytes);
  piece.ready = true;
  context_.wire.release(message.token);
  advance(header.piece);
}

void ServerShard::push(const Header& header, const WireMessage& message) {
  check(header, message);
  ShardPiece& piece = pieces_[header.piece];
  if (!context_.asynchronous && header.round <= piece.closed) {
    throw mismatch("key " + name_ + ": worker " + std::to_string(message.source) +
                   " pushed round " + std::to_string(header.round) + " again");
  }
  if (piece.held.empty()) ++heldPieces_;
  piece.held.push_back(
      {header, message.source, message.payload, message.bytes, message.token, AlignedBuffer()});
  if ((header.flags & kLent) != 0 && !closesWith(header.piece, piece.held.size() - 1)) {
    keep(piece.held.back());
  }
  advance(header.piece);
}

/// Whether advance() will use this push.
bool ServerShard::closesWith(std::size_t index, std::size_t held) {
  ShardPiece& piece = pieces_[index];
  if (!piece.ready || needsWhole() || !nextBatch(piece, batch_) || isRead(piece)) return false;
  return std::ranges::find(batch_, held) != batch_.end();
}

/// Copies a push, so its worker may reuse the memory.
void ServerShard::keep(HeldPush& held) {
  held.copy = merger_.room(held.bytes);
  copyBytes(held.copy.data(), held.data, held.bytes);
  held.data = held.copy.data();
  context_.wire.release(std::exchange(held.token, 0));
}

void ServerShard::advance(std::size_t index) {
  ShardPiece& piece = pieces_[index];
  while (piece.ready && nextBatch(piece, batch_)) {
    if (needsWhole()) {
      if (!applyWhole()) break;
      continue;
    }
    if (isRead(piece)) break;
    apply(index, batch_);
  }
  answerPulls(index);
}

void ServerShard::advanceAll() {
  for (std::size_t p = 0; p < pieces_.size(); ++p) advance(p);
}

// Norms are of the whole shard or of rows, which pieces cut, and updaters get the whole shard.
bool ServerShard::needsWhole() const {
  if (context_.updater) return true;
  return context_.optimizer && isFloat(dtype_) && context_.optimizer->math().needsWhole();
}

bool ServerShard::nextBatch(const ShardPiece& piece, Batch& batch) const {
  batch.clear();
  if (piece.held.empty()) return false;
  if (!context_.asynchronous) return roundBatch(piece, batch);
  batch.push_back(0);
  return true;
}

bool ServerShard::roundBatch(const ShardPiece& piece, Batch& batch) const {
  const std::uint64_t round = piece.closed + 1;
  for (int worker = 0; worker < context_.workers; ++worker) {
    if (pushBatch(piece, worker, round, batch)) continue;
    const Standing standing = context_.standing[static_cast<std::size_t>(worker)];
    if (standing == Standing::active) return false;
    if (standing == Standing::closed) {
      throw Error(ErrorCode::peerLost,
                  "key " + name_ + ": worker " + std::to_string(worker) +
                      " closed its store after it had pushed this key " +
                      countOfRounds(piece.closed) +
                      ", others push it more often; a worker that has fewer batches calls leave() "
                      "before it ends")
          .withRank(worker)
          .withOp("push");
    }
  }
  return !batch.empty();
}

bool ServerShard::pushBatch(const ShardPiece& piece, int worker, std::uint64_t round,
                            Batch& batch) const {
  for (std::size_t i = 0; i < piece.held.size(); ++i) {
    const HeldPush& held = piece.held[i];
    if (held.worker != worker || held.header.round != round) continue;
    batch.push_back(i);
    return true;
  }
  return false;
}

// Whether readers of the value prevent changes of the piece; valueRead() then reports their end.
bool ServerShard::isRead(ShardPiece& piece) {
  if (piece.readers.load(std::memory_order_seq_cst) == 0) return false;
  piece.blocked.store(true, std::memory_order_seq_cst);
  if (piece.readers.load(std::memory_order_seq_cst) != 0) return true;
  piece.blocked.store(false, std::memory_order_seq_cst);
  return false;
}

bool ServerShard::valueRead(std::size_t index) {
  ShardPiece& piece = pieces_[index];
  return piece.readers.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
         piece.blocked.exchange(false, std::memory_order_seq_cst);
}

const std::vector<PushedPiece>& ServerShard::pushedOf(const ShardPiece& piece, const Batch& batch) {
  pushed_.clear();
  for (const std::size_t i : batch) {
    const HeldPush& held = piece.held[i];
    pushed_.push_back({held.data, held.header.encoding, held.bytes});
  }
  return pushed_;
}

ServerShard::Step* ServerShard::findStep(int worker, std::uint64_t round) {
  for (Step& step : steps_) {
    if (step.worker == worker && step.round == round) return &step;
  }
  return nullptr;
}

ServerShard::Step ServerShard::makeStep(int worker, std::uint64_t round) {
  Optimizer& optimizer = *context_.optimizer;
  if (state_ == nullptr) state_ = optimizer.createState(name_, value_, count_, dtype_, rowLength_);
  state_->first = first_;
  const UpdateNumbers numbers = optimizer.issue(*state_);
  const void* const none[] = {nullptr};  // each piece has its own
  auto run = std::make_unique<UpdateRun>(optimizer, *state_, numbers, value_, none);
  return {worker, round, context_.optimizer, state_, std::move(run), pieces_.size()};
}

void ServerShard::apply(std::size_t index, const Batch& batch) {
  std::optional<Error> failure;
  {
    const StepNote note = noteStep({&batch, 1}, index);
    failure = change(index, batch);
  }
  finish(index, batch, failure ? &*failure : nullptr);
}

std::optional<Error> ServerShard::change(std::size_t index, const Batch& batch) {
  const HeldPush& first = pieces_[index].held[batch[0]];
  const int worker = context_.asynchronous ? first.worker : kEverybody;
  const std::uint64_t round = first.header.round;
  const std::vector<PushedPiece>& pushed = pushedOf(pieces_[index], batch);
  Step* step = findStep(worker, round);
  if (step == nullptr && context_.optimizer == nullptr) {
    merger_.assign(valueOf(index), pushed, countOf(index), dtype_, compression());
    return std::nullopt;
  }
  if (!isFloat(dtype_)) {
    try {
      std::rethrow_exception(needsFloats(name_, dtype_));
    } catch (const Error& found) {
      return found;
    }
  }
  if (step == nullptr) step = &steps_.emplace_back(makeStep(worker, round));
  merger_.update(*step->run, 0, value_, pushed, firstOf(index), countOf(index), dtype_,
                 compression());
  if (--step->piecesLeft == 0) steps_.erase(steps_.begin() + (step - steps_.data()));
  return std::nullopt;
}

// The next step with all pieces; false if there is none.
bool ServerShard::applyWhole() {
  const ShardPiece& piece = pieces_[0];
  if (!context_.asynchronous) return applyWhole(kEverybody, piece.closed + 1);
  for (std::size_t i = 0; i < piece.held.size(); ++i) {
    if (applyWhole(piece.held[i].worker, piece.held[i].header.round)) return true;
  }
  return false;
}

bool ServerShard::applyWhole(int worker, std::uint64_t round) {
  std::vector<Batch> batches(pieces_.size());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const ShardPiece& piece = pieces_[p];
    const bool complete = worker == kEverybody
                              ? piece.closed + 1 == round && roundBatch(piece, batches[p])
                              : pushBatch(piece, worker, round, batches[p]);
    if (!complete || !piece.ready) return false;
  }
  bool read = false;
  for (ShardPiece& piece : pieces_) read = isRead(piece) || read;
  if (read) return false;
  std::optional<Error> failure;
  {
    const StepNote note = noteStep(batches, 0);
    if (context_.updater) {
      failure = callUpdater(batches);
    } else {
      stepWhole(worker, round, batches);
    }
  }
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    finish(p, batches[p], failure ? &*failure : nullptr);
    answerPulls(p);
  }
  return true;
}

void ServerShard::stepWhole(int worker, std::uint64_t round, const std::vector<Batch>& batches) {
  const Step step = makeStep(worker, round);
  for (int phase = 0; phase < step.run->phases(); ++phase) {
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      merger_.update(*step.run, phase, value_, pushedOf(pieces_[p], batches[p]), firstOf(p),
                     countOf(p), dtype_, compression());
    }
    step.run->endPhase(phase);
  }
}

std::optional<Error> ServerShard::callUpdater(const std::vector<Batch>& batches) {
  if (received_.size() == 0) received_ = AlignedBuffer(count_ * sizeOf(dtype_));
  auto* const received = static_cast<std::byte*>(received_.data());
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    merger_.assign(received + firstOf(p) * sizeOf(dtype_), pushedOf(pieces_[p], batches[p]),
                   countOf(p), dtype_, compression());
  }
  try {
    context_.updater({name_, dtype_, first_, count_, received, value_});
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The batch is in the value: answers the workers that wait for it.
void ServerShard::finish(std::size_t index, const Batch& batch, const Error* failure) {
  ShardPiece& piece = pieces_[index];
  ++piece.closed;
  for (const std::size_t i : batch) {
    HeldPush& held = piece.held[i];
    if (context_.asynchronous) ++piece.applied[static_cast<std::size_t>(held.worker)];
    // A lent push is released with the value, which wakes its caller.
    const bool lent = (held.header.flags & kLent) != 0 && held.token != 0;
    if (lent) context_.wire.release(std::exchange(held.token, 0));
    if (failure != nullptr) {
      if (index == 0) {
        context_.replies.failed(held.worker, held.header.request, *failure, number_);
      }
    } else if ((held.header.flags & kWantsValue) != 0) {
      sendValue(index, held.worker, held.header.request);
    }
    if (held.token != 0) context_.wire.release(held.token);
    held.data = nullptr;
    merger_.giveRoom(std::move(held.copy));
    context_.settle(held.worker);
  }
  std::erase_if(piece.held, [](const HeldPush& held) { return held.data == nullptr; });
  if (piece.held.empty()) --heldPieces_;
}

void ServerShard::tick(Clock::time_point now, double timeoutMs) {
  if (heldPieces_ == 0) return;
  for (ShardPiece& piece : pieces_) {
    if (piece.held.empty()) continue;
    if (piece.sinceRound != piece.closed + 1) {
      piece.sinceRound = piece.closed + 1;
      piece.since = now;
      continue;
    }
    const auto waited = now - piece.since;
    if (std::chrono::duration<double, std::milli>(waited).count() > timeoutMs) {
      tooLate(piece, timeoutMs);
    }
    if (waited < kCopyAfter) continue;
    for (HeldPush& held : piece.held) {
      if (held.token != 0) keep(held);
    }
  }
}

void ServerShard::tooLate(const ShardPiece& piece, double timeoutMs) const {
  const std::string seconds = " within " + std::to_string(static_cast<long>(timeoutMs)) +
                              " ms; timeoutMs sets the deadline";
  if (!piece.ready) {
    throw Error(ErrorCode::timeout, "key " + name_ +
                                        " was pushed, but worker 0 has not initialised"
                                        " it" +
                                        seconds)
        .withRank(0)
        .withOp("push");
  }
  std::string missing;
  int first = -1;
  for (int worker = 0; worker < context_.workers && !context_.asynchronous; ++worker) {
    Batch batch;
    const bool active = context_.standing[static_cast<std::size_t>(worker)] == Standing::active;
    if (!active || pushBatch(piece, worker, piece.closed + 1, batch)) continue;
    missing += (first < 0 ? "" : ", ") + std::to_string(worker);
    if (first < 0) first = worker;
  }
  if (first < 0) {
    throw Error(ErrorCode::timeout,
                "key " + name_ + ": a worker has not read a value that it pulled" + seconds)
        .withOp("push");
  }
  throw Error(ErrorCode::timeout, "key " + name_ + ": round " + std::to_string(piece.closed + 1) +
                                      " still waits for worker " + missing +
                                      ", which did not push" + seconds)
      .withRank(first)
      .withOp("push");
}

void ServerShard::forget(int worker) {
  std::erase_if(steps_, [worker](const Step& step) { return step.worker == worker; });
}

// ---- answers to pulls

void ServerShard::pull(const Header& header, int worker) {
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    pieces_[p].pulls.push_back({worker, header.request, header.round, {}});
    answerPulls(p);
  }
}

void ServerShard::pullRows(const Header& header, const WireMessage& message) {
  const std::span runs(static_cast<const ShardRun*>(message.payload),
                       message.bytes / sizeof(ShardRun));
  std::vector<std::vector<ElementRun>> wanted(pieces_.size());
  std::uint64_t end = 0;
  for (const ShardRun& run : runs) {
    const std::uint64_t piece = run.first / step_;
    const std::uint64_t first = run.first % step_;
    if (run.first < end || run.first >= count_ || run.count == 0 ||
        run.count > countOf(piece) - first) {
      throw Error(ErrorCode::mismatch, "key " + name_ + ": worker " +
                                           std::to_string(message.source) +
                                           " asked for rows that it does not have");
    }
    end = run.first + run.count;
    wanted[piece].push_back(
        {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(run.count)});
  }
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    if (wanted[p].empty()) continue;
    pieces_[p].pulls.push_back(
        {message.source, header.request, header.round, std::move(wanted[p])});
    answerPulls(p);
  }
}

void ServerShard::answerPulls(std::size_t index) {
  ShardPiece& piece = pieces_[index];
  if (!piece.ready || piece.pulls.empty()) return;
  std::erase_if(piece.pulls, [&](const Waiting& pull) {
    const std::uint64_t rounds =
        context_.asynchronous ? piece.applied[static_cast<std::size_t>(pull.worker)] : piece.closed;
    if (rounds < pull.round) return false;
    if (pull.runs.empty()) {
      sendValue(index, pull.worker, pull.request);
    } else {
      sendRows(index, pull);
    }
    return true;
  });
}

Header ServerShard::valueHeader(std::size_t index, std::uint64_t request) const {
  Header header{};
  header.type = MessageType::value;
  header.dtype = dtype_;
  header.shard = number_;
  header.piece = static_cast<std::uint32_t>(index);
  header.count = countOf(index);
  header.round = pieces_[index].closed;
  header.request = request;
  return header;
}

void ServerShard::sendRows(std::size_t index, const Waiting& pull) {
  ServerTrace* const trace = context_.tracing();
  const double begin = trace == nullptr ? 0 : ServerTrace::now();
  const std::size_t size = sizeOf(dtype_);
  std::vector<std::byte> rows;
  for (const ElementRun& run : pull.runs) {
    const std::byte* const from = valueOf(index) + run.first * size;
    rows.insert(rows.end(), from, from + run.count * size);
  }
  Header header = valueHeader(index, pull.request);
  header.encoding = Encoding::rows;
  context_.replies.rows(pull.worker, header, rows);
  if (trace != nullptr) noteAnswer(*trace, begin, pull.worker, rows.size());
}

void ServerShard::sendValue(std::size_t index, int worker, std::uint64_t request) {
  ServerTrace* const trace = context_.tracing();
  const double begin = trace == nullptr ? 0 : ServerTrace::now();
  const Header header = valueHeader(index, request);
  const std::size_t bytes = header.count * sizeOf(dtype_);
  pieces_[index].readers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t ticket = (std::uint64_t{number_} + 1) << 32 | header.piece;
  context_.replies.value(worker, header, valueOf(index), bytes, ticket);
  if (trace != nullptr) noteAnswer(*trace, begin, worker, bytes);
}

}  // namespace gradlink::dist

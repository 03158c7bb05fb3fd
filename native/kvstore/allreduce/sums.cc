// How an `allreduce` store sums what is ready on all workers.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/deadline.h"
#include "core/kernels/reduce_kernels.h"
#include "core/thread_pool.h"
#include "kvstore/allreduce/allreduce_engine.h"
#include "kvstore/allreduce/sum_into.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// Parts start at cache lines.
constexpr std::size_t kAlign = 64;
/// Bytes that a thread sums or copies at a time.
constexpr std::size_t kBlockBytes = 256 << 10;

std::size_t bytesOf(const Announcement& announced, DType dtype) {
  return announced.count * sizeOf(dtype);
}

}  // namespace

void sumInto(std::byte* target, const std::vector<const void*>& arrays, std::size_t first,
             std::size_t count, const Partial& partial) {
  const std::size_t size = sizeOf(partial.dtype);
  const std::size_t block = kBlockBytes / size;
  const std::size_t parts = (count + block - 1) / block;
  const auto one = [&](std::size_t part) {
    const std::size_t begin = part * block;
    partial.sum(arrays, first + begin, target + begin * size, std::min(block, count - begin));
  };
  if (parts == 1) return one(0);
  ThreadPool::shared().parallel(parts, one);
}

/// Bytes of a key in the buffer, or in each worker's block of it.
std::size_t AllreduceEngine::roomOf(const ReadySum& ready) const {
  const Announcement& announced = ready.announced;
  if (announced.kind == SumKind::step) return shardRoomOf(announced, ready.partial.dtype);
  std::size_t bytes = bytesOf(announced, ready.partial.dtype);
  if (!ready.rows.empty()) {
    const std::size_t rowBytes = announced.rowLength * sizeOf(announced.dtype);
    bytes =
        *std::max_element(ready.rows.begin(), ready.rows.end()) * (sizeof(std::int64_t) + rowBytes);
  }
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

/// Enters and leaves with the lock.
void AllreduceEngine::sum(std::vector<ReadySum>&& ready, Lock& lock) {
  std::vector<Share> parts;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (!parts.empty() && parts.front().announced.kind == SumKind::step) {
      stepTogether(parts, bytes, lock);
    } else if (!parts.empty()) {
      sumTogether(parts, bytes, lock);
    }
    parts.clear();
    bytes = 0;
  };
  for (ReadySum& one : ready) {
    const Announcement& announced = one.announced;
    if (announced.kind == SumKind::barrier) {
      if (!left_) endFence();
      continue;
    }
    if (announced.kind == SumKind::states) {
      gatherStates(lock);
      continue;
    }
    const std::size_t own = roomOf(one);
    SummedKey* const key = announced.key < keys_.size() ? &keys_[announced.key] : nullptr;
    Waiting* const waiting = left_ ? nullptr : &key->queue.front();
    Share part{announced, std::move(one.rows), bytes, waiting, key, nullptr, one.partial};
    const bool fits = !parts.empty() && parts.front().announced.kind == announced.kind &&
                      parts.front().announced.dtype == announced.dtype &&
                      parts.front().partial.dtype == part.partial.dtype &&
                      parts.front().ofRows() == part.ofRows() &&
                      (bytes + own) * blocks(part) <= options_.fuseBytes;
    if (!fits) flush();
    part.offset = bytes;
    parts.push_back(std::move(part));
    bytes += own;
  }
  flush();
}

/// Blocks of a call in the buffer: one for each worker for rows and for stepped parts.
std::size_t AllreduceEngine::blocks(const Share& part) const {
  const bool each = part.ofRows() || part.announced.kind == SumKind::step;
  return each ? static_cast<std::size_t>(comm_->size()) : 1;
}

void AllreduceEngine::sumTogether(std::vector<Share>& parts, std::size_t bytes, Lock& lock) {
  const bool ofRows = parts.front().ofRows();
  endForAll([&] { growBuffer(bytes * blocks(parts.front())); });
  for (Share& part : parts) {
    part.sum = at(part);
    // The value changes, so the shard is outdated.
    if (part.key != nullptr) part.key->sharded = false;
  }
  double copy = 0;
  double reduced = 0;
  call(lock, [&] {
    const auto begin = Deadline::Clock::now();
    ofRows ? fillRows(parts, bytes) : fill(parts);
    copy = secondsSince(begin);
    ofRows ? gatherRows(bytes) : reduce(parts, bytes);
    reduced = secondsSince(begin) - copy;
  });
  spent_.copy += copy;
  spent_.sums->reduce += reduced;
  spent_.sums->bytesReduced += bytes;
  const auto begin = Deadline::Clock::now();
  handOver(parts, bytes, lock);
  spent_.sums->update += secondsSince(begin);
}

void AllreduceEngine::growBuffer(std::size_t bytes) {
  const std::size_t wanted = std::max<std::size_t>(bytes, kAlign);
  if (wanted <= bufferBytes_) return;
  if (buffer_ != nullptr) comm_->freeShared(buffer_);
  buffer_ = nullptr;
  bufferBytes_ = 0;
  buffer_ = comm_->allocShared(wanted);
  bufferBytes_ = wanted;
}

/// Sums this worker's devices' arrays into the buffer.
void AllreduceEngine::fill(const std::vector<Share>& parts) {
  for (const Share& part : parts) {
    const Announcement& announced = part.announced;
    if (announced.kind == SumKind::init) {
      const bool gives = part.waiting != nullptr && agreement_.root() == rank_;
      // An empty array may have no memory.
      if (gives && announced.count > 0) {
        part.partial.take(part.waiting->operation.in.front(), at(part), announced.count);
      }
    } else if (part.waiting == nullptr) {
      std::memset(at(part), 0, bytesOf(announced, part.partial.dtype));
    } else if (part.waiting->ofRows()) {
      const SortedRows sum = sumRows(part.waiting->given(), announced.rowLength, part.partial);
      const std::size_t bytes = bytesOf(announced, sum.dtype);
      // Place narrow elements at the end, so they can be widened in place.
      std::byte* const to = at(part) + bytesOf(announced, part.partial.dtype) - bytes;
      spreadRows(sum, announced.rowLength, to, announced.count);
      if (to != at(part)) part.partial.take(to, at(part), announced.count);
    } else {
      sumInto(at(part), part.waiting->operation.in, 0, announced.count, part.partial);
    }
  }
}

void AllreduceEngine::reduce(const std::vector<Share>& parts, std::size_t bytes) {
  const Announcement& first = parts.front().announced;
  const DType dtype = parts.front().partial.dtype;
  const std::size_t count = bytes / sizeOf(dtype);
  const void* const in = buffer_;
  void* const out = buffer_;
  const Buffers buffers{.in = {&in, 1}, .out = {&out, 1}};
  const CallOptions options{.timeoutMs = options_.timeoutMs};
  if (count == 0) return;
  if (first.kind == SumKind::init) {
    comm_->broadcast(buffers, count, dtype, agreement_.root(), options);
    return;
  }
  comm_->allReduce(buffers, count, dtype, ReduceOp::sum, options);
  for (const Share& part : parts) {
    part.partial.finish(at(part), at(part), part.announced.count, 1);
  }
}

/// Passes the sums to this worker's own store and waits until it has read them.
void AllreduceEngine::handOver(const std::vector<Share>& parts, std::size_t bytes, Lock& lock) {
  std::vector<Operation> operations;
  operations.reserve(parts.size());
  const auto unread = std::make_shared<std::size_t>(0);
  for (const Share& part : parts) {
    if (part.key == nullptr) continue;
    Operation operation;
    operation.key = part.announced.key;
    if (part.ofRows()) {
      giveRows(part, bytes, operation);
    } else {
      operation.in = {part.sum};
    }
    std::shared_ptr<Ticket> ticket;
    if (part.waiting != nullptr) {
      Operation& pushed = part.waiting->operation;
      operation.kind = pushed.kind;
      operation.priority = pushed.priority;
      operation.out = std::move(pushed.out);
      ticket = pushed.ticket;
    } else {
      operation.kind =
          part.announced.kind == SumKind::init ? OperationKind::init : OperationKind::push;
    }
    ++*unread;
    operation.ticket = std::make_shared<Ticket>([this, unread, ticket](std::exception_ptr error) {
      const std::lock_guard tickets(tickets_);
      if (ticket) ticket->finish(std::move(error));
      if (--*unread == 0) ended_.notify_all();
    });
    operations.push_back(std::move(operation));
  }
  values_.submit(std::move(operations), true);
  for (const Share& part : parts) {
    if (part.waiting == nullptr) continue;
    std::deque<Waiting>& queue = part.key->queue;
    queue.pop_front();
    --unsummed_;
    while (!queue.empty() && queue.front().operation.kind != OperationKind::init &&
           !isPush(queue.front().operation.kind)) {
      Operation pull = std::move(queue.front().operation);
      queue.pop_front();
      forward(std::move(pull), false);
    }
  }
  lock.unlock();
  {
    std::unique_lock tickets(tickets_);
    ended_.wait(tickets, [&] { return *unread == 0 || stopping_; });
  }
  lock.lock();
  // The store may still read the sums: the buffer stays until close().
  if (stopping_) throw Error(ErrorCode::closed, "the store is closed");
}

}  // namespace gradlink

// How an `allreduce` store sums what is ready on all workers.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/deadline.h"
#include "core/kernels/reduce_kernels.h"
#include "core/thread_pool.h"
#include "kvstore/allreduce/engine.h"
#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// Parts start at cache lines.
constexpr std::size_t kAlign = 64;
/// What one thread sums or copies at a time.
constexpr std::size_t kBlockBytes = 256 << 10;

std::size_t bytesOf(const Announcement& announced) {
  return announced.count * sizeOf(announced.dtype);
}

void sumInto(std::byte* target, const std::vector<const void*>& arrays, std::size_t count,
             DType dtype) {
  const std::size_t block = kBlockBytes / sizeOf(dtype);
  const std::size_t parts = (count + block - 1) / block;
  const auto one = [&](std::size_t part) {
    const std::size_t first = part * block;
    const std::size_t offset = first * sizeOf(dtype);
    std::vector<const void*> sources;
    sources.reserve(arrays.size());
    for (const void* array : arrays) {
      sources.push_back(static_cast<const std::byte*>(array) + offset);
    }
    void* const to = target + offset;
    reduceMany({&to, 1}, sources, std::min(block, count - first), dtype, ReduceOp::sum);
  };
  if (parts == 1) return one(0);
  ThreadPool::shared().parallel(parts, one);
}

}  // namespace

/// The lock is held before and after.
void AllreduceEngine::sum(const std::vector<Announcement>& ready, Lock& lock) {
  std::vector<Share> parts;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (!parts.empty()) sumTogether(parts, bytes, lock);
    parts.clear();
    bytes = 0;
  };
  for (const Announcement& announced : ready) {
    if (announced.kind == SumKind::barrier) {
      if (!left_) endFence();
      continue;
    }
    const std::size_t own = (bytesOf(announced) + kAlign - 1) / kAlign * kAlign;
    const bool fits = !parts.empty() && parts.front().announced.kind == announced.kind &&
                      parts.front().announced.dtype == announced.dtype &&
                      bytes + own <= options_.fuseBytes;
    if (!fits) flush();
    Operation* const operation = left_ ? nullptr : &keys_[announced.key].queue.front();
    parts.push_back({announced, bytes, operation});
    bytes += own;
  }
  flush();
}

void AllreduceEngine::sumTogether(const std::vector<Share>& parts, std::size_t bytes, Lock& lock) {
  endForAll([&] { growBuffer(bytes); });
  double copy = 0;
  double reduced = 0;
  call(lock, [&] {
    const auto begin = Deadline::Clock::now();
    fill(parts);
    copy = secondsSince(begin);
    reduce(parts, bytes);
    reduced = secondsSince(begin) - copy;
  });
  times_.copy += copy;
  times_.reduce += reduced;
  bytesReduced_ += bytes;
  const auto begin = Deadline::Clock::now();
  handOver(parts, lock);
  times_.update += secondsSince(begin);
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

/// What this worker brings to the sum: its devices' arrays, summed.
void AllreduceEngine::fill(const std::vector<Share>& parts) {
  for (const Share& part : parts) {
    const Announcement& announced = part.announced;
    if (announced.kind == SumKind::init) {
      const bool gives = part.operation != nullptr && agreement_.root() == rank_;
      // An empty array may have no memory.
      if (gives && announced.count > 0) {
        std::memcpy(at(part), part.operation->in.front(), bytesOf(announced));
      }
    } else if (part.operation == nullptr) {
      std::memset(at(part), 0, bytesOf(announced));
    } else {
      sumInto(at(part), part.operation->in, announced.count, announced.dtype);
    }
  }
}

void AllreduceEngine::reduce(const std::vector<Share>& parts, std::size_t bytes) {
  const Announcement& first = parts.front().announced;
  const std::size_t count = bytes / sizeOf(first.dtype);
  const void* const in = buffer_;
  void* const out = buffer_;
  const Buffers buffers{.in = {&in, 1}, .out = {&out, 1}};
  const CallOptions options{.timeoutMs = options_.timeoutMs};
  if (count == 0) return;
  if (first.kind == SumKind::init) {
    comm_->broadcast(buffers, count, first.dtype, agreement_.root(), options);
  } else {
    comm_->allReduce(buffers, count, first.dtype, ReduceOp::sum, options);
  }
}

/// Gives the sums to the store of this worker and waits until it has read them.
void AllreduceEngine::handOver(const std::vector<Share>& parts, Lock& lock) {
  std::vector<Operation> operations;
  operations.reserve(parts.size());
  const auto unread = std::make_shared<std::size_t>(0);
  for (const Share& part : parts) {
    if (part.announced.key >= keys_.size()) continue;  // made after this worker had left
    Operation operation;
    operation.key = part.announced.key;
    operation.in = {at(part)};
    std::shared_ptr<Ticket> ticket;
    if (part.operation != nullptr) {
      operation.kind = part.operation->kind;
      operation.priority = part.operation->priority;
      operation.out = std::move(part.operation->out);
      ticket = part.operation->ticket;
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
    if (part.operation == nullptr) continue;
    std::deque<Operation>& queue = keys_[part.announced.key].queue;
    queue.pop_front();
    --unsummed_;
    while (!queue.empty() && queue.front().kind != OperationKind::init &&
           !isPush(queue.front().kind)) {
      Operation pull = std::move(queue.front());
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
  // Whoever reads the sums still does so: the buffer stays until close().
  if (stopping_) throw Error(ErrorCode::closed, "the store is closed");
}

}  // namespace gradlink

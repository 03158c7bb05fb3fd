// How an `allreduce` store steps ready sums if each worker steps a part: reduce-scatter, step,
// all-gather.
//
// The buffer has one region for each worker, with one part of every key in each: reduce-scatter and
// all-gather work in place.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "core/deadline.h"
#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/thread_pool.h"
#include "kvstore/allreduce/allreduce_engine.h"
#include "kvstore/allreduce/sum_into.h"
#include "kvstore/base/misuse.h"

namespace gradlink {

AllreduceShards::Waits AllreduceEngine::waits() {
  return [this](const std::function<void(std::shared_ptr<Ticket>)>& begin) { waitFor(begin); };
}

/// Bytes of a key's part in each worker's region.
std::size_t AllreduceEngine::shardRoomOf(const Announcement& announced, DType dtype) const {
  return shards_->roomOf(announced.count) * sizeOf(dtype);
}

/// Enters and leaves with the lock. `room`: bytes of one worker's parts.
void AllreduceEngine::stepTogether(std::vector<Share>& parts, std::size_t room, Lock& lock) {
  const std::size_t bytes = room * static_cast<std::size_t>(shards_->workers());
  endForAll([&] {
    for (const Share& part : parts) checkStep(part);
    growBuffer(bytes);
  });
  double copy = 0;
  double reduced = 0;
  double update = 0;
  call(lock, [&] {
    auto from = Deadline::Clock::now();
    const auto lap = [&from](double& into) {
      const auto now = Deadline::Clock::now();
      into += std::chrono::duration<double>(now - from).count();
      from = now;
    };
    const DType dtype = parts.front().partial.dtype;
    const std::size_t count = room / sizeOf(dtype);
    std::byte* const base = static_cast<std::byte*>(buffer_);
    std::byte* const own = base + room * static_cast<std::size_t>(rank_);
    const CallOptions options{.timeoutMs = options_.timeoutMs};
    fillShards(parts, room);
    lap(copy);
    if (count != 0) {
      const void* const in = base;
      void* const out = own;
      comm_->reduceScatter({.in = {&in, 1}, .out = {&out, 1}}, count, dtype, ReduceOp::sum,
                           options);
    }
    for (const Share& part : parts) {
      std::byte* const mine = at(part) + room * static_cast<std::size_t>(rank_);
      part.partial.finish(mine, mine, shards_->own(part.announced.count).count, 1);
    }
    lap(reduced);
    endForAll([&] { stepShards(parts, room); });
    lap(update);
    if (count != 0) {
      const void* const in = own;
      void* const out = base;
      comm_->allGather({.in = {&in, 1}, .out = {&out, 1}}, count, dtype, options);
    }
    lap(reduced);
    endForAll([&] { joinShards(parts, room); });
    lap(copy);
  });
  spent_.copy += copy;
  spent_.sums->reduce += reduced;
  spent_.sums->bytesReduced += bytes;
  const auto begin = Deadline::Clock::now();
  handOver(parts, room, lock);
  spent_.sums->update += update + secondsSince(begin);
}

/// Throws if a worker that has left cannot step its part like the others.
void AllreduceEngine::checkStep(const Share& part) const {
  if (part.key != nullptr && part.announced.changes == changes_) return;
  throw storeUnsupported(
      "this worker has left the sums before " +
      std::string(part.key == nullptr ? "a key was made"
                                      : "the optimizer or its rate was changed") +
      ", and steps a part of every key: with shardOptimizer change nothing once a worker has left");
}

/// Sums this worker's devices' arrays into the buffer, each part in its worker's region.
void AllreduceEngine::fillShards(const std::vector<Share>& parts, std::size_t room) {
  for (const Share& part : parts) {
    for (int worker = 0; worker < shards_->workers(); ++worker) {
      const auto [first, count] = shards_->partOf(worker, part.announced.count);
      if (count == 0) continue;
      std::byte* const to = at(part) + room * static_cast<std::size_t>(worker);
      if (part.waiting == nullptr) {
        std::memset(to, 0, count * sizeOf(part.partial.dtype));
      } else {
        sumInto(to, part.waiting->operation.in, first, count, part.partial);
      }
    }
  }
}

/// Reads the shard anew if something other than a step has changed the value.
void AllreduceEngine::refreshShard(const Share& part) {
  const Announcement& announced = part.announced;
  const std::size_t size = sizeOf(announced.dtype);
  if (whole_.size() < announced.count * size) whole_ = AlignedBuffer(announced.count * size);
  const auto one = [&](OperationKind kind) {
    Operation operation;
    operation.kind = kind;
    operation.key = announced.key;
    return operation;
  };
  const auto run = [this](Store& store, Operation operation) {
    waitFor([&](std::shared_ptr<Ticket> done) {
      operation.ticket = std::move(done);
      std::vector<Operation> operations;
      operations.push_back(std::move(operation));
      store.submit(std::move(operations), true);
    });
  };
  Operation pull = one(OperationKind::pull);
  pull.out = {whole_.data()};
  run(values_, std::move(pull));
  Operation init = one(OperationKind::init);
  init.in = {static_cast<const std::byte*>(whole_.data()) +
             shards_->own(announced.count).first * size};
  init.inGpus = {kOnHost};
  run(shards_->store(), std::move(init));
  part.key->sharded = true;
}

/// Steps this worker's region: sums become new values.
void AllreduceEngine::stepShards(const std::vector<Share>& parts, std::size_t room) {
  for (const Share& part : parts) {
    if (!part.key->sharded) refreshShard(part);
  }
  waitFor([&](const std::shared_ptr<Ticket>& done) {
    std::vector<Operation> operations;
    operations.reserve(parts.size());
    for (const Share& part : parts) {
      Operation step;
      step.kind = OperationKind::pushPull;
      step.key = part.announced.key;
      void* const own = at(part) + room * static_cast<std::size_t>(rank_);
      step.in = {own};
      step.out = {own};
      step.inGpus = {kOnHost};
      step.outGpus = {kOnHost};
      step.ticket = done;
      operations.push_back(std::move(step));
    }
    shards_->store().submit(std::move(operations), true);
  });
}

/// Locates the new values in the buffer. A single key's parts are contiguous, unless their sums
/// took more room; those of several keys are not.
void AllreduceEngine::joinShards(std::vector<Share>& parts, std::size_t room) {
  if (parts.size() == 1 && !parts.front().partial.isWider()) {
    parts.front().sum = at(parts.front());
    return;
  }
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (const Share& part : parts) {
    offsets.push_back(bytes);
    bytes += shardRoomOf(part.announced, part.announced.dtype) *
             static_cast<std::size_t>(shards_->workers());
  }
  if (whole_.size() < bytes) whole_ = AlignedBuffer(bytes);
  ThreadPool::shared().parallel(parts.size(), [&](std::size_t i) {
    Share& part = parts[i];
    std::byte* const to = static_cast<std::byte*>(whole_.data()) + offsets[i];
    const std::size_t size = sizeOf(part.announced.dtype);
    for (int worker = 0; worker < shards_->workers(); ++worker) {
      const auto [first, count] = shards_->partOf(worker, part.announced.count);
      if (count == 0) continue;
      copyBytes(to + first * size, at(part) + room * static_cast<std::size_t>(worker),
                count * size);
    }
    part.sum = to;
  });
}

// ---- states

/// For this worker's fence or, once it has left, the others'.
void AllreduceEngine::gatherStates(Lock& lock) {
  // A worker that has left writes no file.
  const AllreduceFence* const fence = left_ ? nullptr : &queue_.fence();
  std::exception_ptr error;
  call(lock, [&] {
    std::vector<std::uint8_t> own;
    try {
      own = shards_->states(waits());
    } catch (const Error& failed) {
      if (failed.code == ErrorCode::closed) throw;
      error = std::current_exception();
    }
    const std::vector<std::vector<std::uint8_t>> all = gather(own);
    if (agreement_.root() != rank_ || fence == nullptr || error) return;
    try {
      fence->gathers(all);
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (fence == nullptr) return;
  if (error && !fenceError_) fenceError_ = error;
  endFence();
}

/// All workers' bytes on the first that has not left, elsewhere nothing.
std::vector<std::vector<std::uint8_t>> AllreduceEngine::gather(
    const std::vector<std::uint8_t>& own) {
  const auto workers = static_cast<std::size_t>(shards_->workers());
  const CallOptions options{.timeoutMs = options_.timeoutMs};
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(workers);
  const void* in = &length;
  void* out = lengths.data();
  comm_->allGather({.in = {&in, 1}, .out = {&out, 1}}, 1, DType::uint64, options);
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::vector<std::uint8_t>> all;
  if (longest == 0) return all;
  const int root = agreement_.root();
  std::vector<std::uint8_t> padded = own;
  std::vector<std::uint8_t> rooms;
  endForAll([&] {
    padded.resize(longest);
    if (rank_ == root) rooms.resize(longest * workers);
  });
  in = padded.data();
  out = rooms.data();
  comm_->gather({.in = {&in, 1}, .out = {&out, 1}}, longest, DType::uint8, root, options);
  if (rank_ != root) return all;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const auto from = rooms.begin() + static_cast<std::ptrdiff_t>(worker * longest);
    all.emplace_back(from, from + static_cast<std::ptrdiff_t>(lengths[worker]));
  }
  return all;
}

}  // namespace gradlink

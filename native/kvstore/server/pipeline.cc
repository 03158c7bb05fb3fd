#include "kvstore/server/pipeline.h"

#include <cstring>
#include <utility>

#include "core/futex.h"

namespace gradlink::dist {
namespace {

// Adding up and answering this much takes less than a wake-up.
constexpr std::size_t kAnsweredHereBytes = 16 << 10;
// Some 10 us: the next piece mostly comes sooner, and sleeping costs as much.
constexpr int kSpins = 500;

}  // namespace

Header headerOf(const WireMessage& message) {
  Header header{};
  const bool whole = message.header.size() == sizeof(header);
  if (whole) std::memcpy(&header, message.header.data(), sizeof(header));
  if (!whole || static_cast<int>(header.dtype) >= kDTypeCount) {
    throw Error(ErrorCode::mismatch,
                "rank " + std::to_string(message.source) +
                    " sent an invalid message; do all run the same version of gradlink?")
        .withRank(message.source);
  }
  return header;
}

Pipeline::Pipeline(ServerContext& context, int index, bool threaded)
    : context_(context), merger_(static_cast<std::uint16_t>(index + 1)) {
  if (threaded) thread_ = std::thread([this] { run(); });
}

Pipeline::~Pipeline() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
  thread_.join();
}

void Pipeline::post(ShardTask task, bool here) {
  if (!thread_.joinable()) return perform(task);
  if (here && task.received.bytes <= kAnsweredHereBytes && performHere(task)) return;
  bool asleep = false;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(task);
    queued_.store(queue_.size(), std::memory_order_release);
    asleep = sleeping_;
  }
  if (asleep) wake_.notify_one();
}

/// False if the thread has tasks. Nobody else posts, so it stays asleep meanwhile.
bool Pipeline::performHere(const ShardTask& task) {
  {
    const std::lock_guard lock(mutex_);
    if (!queue_.empty() || busy_) return false;
  }
  perform(task);
  return true;
}

void Pipeline::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void Pipeline::run() {
  while (takeTasks()) {
    for (const ShardTask& task : taken_) {
      if (!stopping_.load(std::memory_order_acquire)) perform(task);
    }
    taken_.clear();
  }
}

bool Pipeline::takeTasks() {
  {
    std::lock_guard lock(mutex_);
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
  for (int i = 0; i < kSpins && queued_.load(std::memory_order_acquire) == 0; ++i) cpuRelax();
  std::unique_lock lock(mutex_);
  sleeping_ = true;
  wake_.wait(lock, [this] { return !queue_.empty() || stopping_.load(); });
  sleeping_ = false;
  if (stopping_.load()) return false;
  taken_.swap(queue_);
  queued_.store(0, std::memory_order_release);
  busy_ = true;
  return true;
}

void Pipeline::perform(const ShardTask& task) {
  ServerShard& shard = *task.shard;
  try {
    switch (task.what) {
      case ShardTask::message: {
        const Header header = headerOf(task.received);
        if (header.type == MessageType::init) return shard.init(header, task.received);
        if (header.type == MessageType::push) return shard.push(header, task.received);
        if (header.type == MessageType::pullRows) {
          shard.pullRows(header, task.received);
        } else {
          shard.pull(header, task.received.source);
        }
        context_.wire.release(task.received.token);
        return;
      }
      case ShardTask::advance:
        return shard.advance(task.piece);
      case ShardTask::advanceAll:
        return shard.advanceAll();
      case ShardTask::tick:
        return shard.tick(task.now, task.timeoutMs);
    }
  } catch (...) {
    context_.fail(std::current_exception());
  }
}

}  // namespace gradlink::dist

// State shared by the parts of a server: the update rule, the workers' standing, and replies.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/wire.h"
#include "kvstore/base/compression.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/protocol/protocol.h"
#include "kvstore/server/server.h"

namespace gradlink::dist {

enum class Standing : std::uint8_t {
  active,  // rounds wait for it
  left,    // it announced its leaving: rounds do not wait
  closed,  // it closed without announcing that: a round that needs it is an error
  lost,    // it died
};

/// Sends to workers. Thread-safe.
class Replies {
 public:
  explicit Replies(Wire& wire) : wire_(wire) {}

  /// Memory of the wire, which must not change until `ticket` is reported as sent.
  void value(int worker, const Header& header, const void* data, std::size_t bytes,
             std::uint64_t ticket);
  /// Sends a copy of some rows.
  void rows(int worker, const Header& header, const std::vector<std::byte>& data) {
    send(worker, header, data.data(), data.size());
  }
  /// `data` may be null.
  void answer(int worker, MessageType type, std::uint64_t request, const void* data = nullptr,
              std::size_t bytes = 0);
  void done(int worker, std::uint64_t request) { answer(worker, MessageType::done, request); }
  void failed(int worker, std::uint64_t request, const Error& error, std::uint32_t shard = 0);

  /// Whether a sent ticket belongs to an answer; frees the answer's memory.
  bool took(std::uint64_t ticket);

 private:
  /// The bit of answers' tickets; tickets of values are smaller.
  static constexpr std::uint64_t kAnswer = std::uint64_t{1} << 63;

  void send(int worker, const Header& header, const void* data, std::size_t bytes);

  Wire& wire_;
};

struct ServerContext {
  ServerContext(Wire& theWire, const ServerOptions& options)
      : wire(theWire),
        replies(theWire),
        workers(options.workers),
        asynchronous(options.asynchronous),
        trace(options.trace),
        standing(static_cast<std::size_t>(workers), Standing::active),
        pending(static_cast<std::size_t>(workers)) {}

  Wire& wire;
  Replies replies;
  const int workers;
  const bool asynchronous;
  ServerTrace* const trace;
  /// Null while tracing is off.
  ServerTrace* tracing() const { return trace != nullptr && trace->on() ? trace : nullptr; }

  // ---- changed by the receiving thread while the pipelines are idle
  std::shared_ptr<Optimizer> optimizer;
  /// In place of an optimizer.
  std::function<void(const ShardUpdate&)> updater;
  std::optional<GradientCompression> compression;
  std::vector<Standing> standing;
  int active() const {
    int count = 0;
    for (const Standing s : standing) count += s == Standing::active ? 1 : 0;
    return count;
  }

  /// By worker: pushed pieces that have not changed the stored value yet.
  std::deque<std::atomic<std::int64_t>> pending;
  /// Whether to wake the receiving thread when one of them becomes 0.
  std::atomic<bool> pendingAwaited{false};
  void settle(int worker) {
    if (pending[static_cast<std::size_t>(worker)].fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        pendingAwaited.load(std::memory_order_seq_cst)) {
      wire.wake();
    }
  }

  /// An error in a pipeline ends the store; the first counts.
  void fail(std::exception_ptr error) {
    {
      std::lock_guard lock(failureMutex_);
      if (!failure_) failure_ = std::move(error);
    }
    hasFailed_.store(true, std::memory_order_release);
    wire.wake();
  }
  void throwFailure() {
    if (!hasFailed_.load(std::memory_order_acquire)) return;
    std::lock_guard lock(failureMutex_);
    std::rethrow_exception(failure_);
  }

 private:
  std::mutex failureMutex_;
  std::exception_ptr failure_;
  std::atomic<bool> hasFailed_{false};
};

}  // namespace gradlink::dist

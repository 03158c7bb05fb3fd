// A communicator, its queue, and its cleanup when its environment ends.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "binding/environment.h"
#include "binding/external_memory.h"
#include "core/communicator.h"
#include "core/fusion.h"
#include "core/joinable.h"
#include "core/work_queue.h"

namespace gradlink::nccl {
class NcclCommunicator;
}

namespace gradlink::binding {

/// Lets a queued operation be cancelled: the queue and the canceller compete for it.
class CallTicket {
 public:
  bool begin() { return take(State::begun); }
  bool cancel() { return take(State::cancelled); }

 private:
  enum class State { queued, begun, cancelled };
  bool take(State next) {
    State expected = State::queued;
    return state_.compare_exchange_strong(expected, next);
  }
  std::atomic<State> state_ = State::queued;
};

/// An object that ends with its communicator, such as a window. On the JavaScript thread.
class CommunicatorPart {
 public:
  virtual ~CommunicatorPart() = default;
  /// Frees its resources when the communicator closes and its queue is empty. Idempotent.
  virtual void end(Napi::Env) = 0;
};

/// Throws ERR_UNSUPPORTED in the name of `op` for other ranks than NCCL's.
nccl::NcclCommunicator& gpuRanks(Communicator&, const char* op);

/// Outlives its JavaScript object: pending operations and windows hold it, too. Created and
/// destroyed on the JavaScript thread.
class CommunicatorHandle final : public Resident {
 public:
  CommunicatorHandle(Environment&, std::unique_ptr<Communicator>);
  /// Needs a call of connect().
  explicit CommunicatorHandle(Environment&);
  ~CommunicatorHandle() override;

  using Join = std::function<std::unique_ptr<Communicator>(const std::atomic<bool>* cancelled)>;
  /// Joins on the queue's thread. `cancelled` becomes true when the environment ends.
  void connect(const Join&);

  /// For new calls: throws ERR_CLOSED after markClosed(). Ends a segment of small sums.
  Communicator& open();
  /// For work queued before a close, and for close itself. Throws ERR_CLOSED after release().
  Communicator& communicator();
  /// For memory of the communicator that may outlive release().
  std::shared_ptr<Communicator> share() { return communicator_; }
  /// The held ranks' GPU ordinals; empty for host memory. On the JavaScript thread.
  std::span<const int> gpus();
  WorkQueue& queue() { return queue_; }
  /// Fuses small sums; open() ends its segment.
  Fusion& fusion() { return fusion_; }
  /// From now on calls begin with an exchange of who has joined. Idempotent. Waits for pending
  /// calls; throws ERR_UNSUPPORTED for several ranks or GPUs.
  void makeJoinable();
  /// Null before makeJoinable().
  JoinableCommunicator* joinable() { return joinable_; }
  void markClosed() { closed_ = true; }
  // Both do nothing after release().
  void close();
  void abort(const std::string& reason);
  /// Frees memory and descriptors. After markClosed(), when the queue's thread has ended.
  void release(Napi::Env);
  /// Ends `part` before the communicator closes.
  void add(const std::shared_ptr<CommunicatorPart>&);
  /// Arrays of allocShared.
  ShownMemory& shown() { return shown_; }
  /// Waiting calls end once `above` has: see Communicator::follow.
  void follow(CommunicatorHandle& above);

  /// Runs on the caller's thread if nothing is pending, else queues and waits.
  void runNow(const std::function<void(Communicator&)>&);

  /// Null for number 0: an operation that cannot be cancelled.
  std::shared_ptr<CallTicket> issueTicket(double number);
  bool cancel(double number);

  void abandon() override;
  void join() override;

 private:
  std::shared_ptr<Environment> environment_;
  /// The queued work owns them; expired ones are removed when the next is issued.
  std::unordered_map<double, std::weak_ptr<CallTicket>> tickets_;
  std::atomic<bool> cancelled_ = false;
  bool closed_ = false;
  /// Cached: this is on the path of the shortest calls.
  std::optional<std::vector<int>> gpus_;
  /// Guards communicator_ between connect() on the queue's thread and abandon().
  std::mutex connecting_;
  /// The communicator that communicator_ follows, which must outlive it.
  std::shared_ptr<Communicator> above_;
  /// Null after release(); its memory in use elsewhere keeps it.
  std::shared_ptr<Communicator> communicator_;
  JoinableCommunicator* joinable_ = nullptr;
  ShownMemory shown_;
  std::vector<std::weak_ptr<CommunicatorPart>> parts_;
  Fusion fusion_;
  /// Last, so destroyed first: its thread uses everything above.
  WorkQueue queue_;
};

}  // namespace gradlink::binding

// A communicator, its queue, and what must happen when its environment goes.
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

/// Lets a queued operation be dropped: whoever comes first, the queue or the canceller, has it.
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

/// Something of a communicator that goes with it, as a window does. On the JavaScript thread.
class CommunicatorPart {
 public:
  virtual ~CommunicatorPart() = default;
  /// The communicator closes, and nothing of its queue is left: gives back what it has. Idempotent.
  virtual void end(Napi::Env) = 0;
};

/// Ranks of NCCL, which `op` is called on; throws ERR_UNSUPPORTED for others.
nccl::NcclCommunicator& gpuRanks(Communicator&, const char* op);

/// Outlives its JavaScript object: pending operations and windows hold it too. Made and destroyed
/// on the JavaScript thread.
class CommunicatorHandle final : public Resident {
 public:
  CommunicatorHandle(Environment&, std::unique_ptr<Communicator>);
  /// One that is still to connect().
  explicit CommunicatorHandle(Environment&);
  ~CommunicatorHandle() override;

  using Join = std::function<std::unique_ptr<Communicator>(const std::atomic<bool>* cancelled)>;
  /// Joins as told; on the queue's thread. `cancelled` becomes true when the environment goes.
  void connect(const Join&);

  /// For calls that begin now: throws ERR_CLOSED after markClosed(). Ends a row of small sums.
  Communicator& open();
  /// For work that was queued before a close, and for close itself. Throws ERR_CLOSED after
  /// release().
  Communicator& communicator();
  /// For memory of the communicator's that may be used after release().
  std::shared_ptr<Communicator> share() { return communicator_; }
  /// The ordinals of the held ranks' GPUs; empty where ranks have host memory. On the JavaScript
  /// thread.
  std::span<const int> gpus();
  WorkQueue& queue() { return queue_; }
  /// What small sums go through; open() ends what is in a row there.
  Fusion& fusion() { return fusion_; }
  /// From now on calls begin with word of who has joined; idempotent. Waits for what is
  /// pending, and throws ERR_UNSUPPORTED where ranks are several or GPUs.
  void makeJoinable();
  /// Null before makeJoinable().
  JoinableCommunicator* joinable() { return joinable_; }
  void markClosed() { closed_ = true; }
  // Both do nothing after release().
  void close();
  void abort(const std::string& reason);
  /// After markClosed(), when the queue's thread has ended: gives back memory and descriptors.
  void release(Napi::Env);
  /// Ends it before the communicator goes.
  void add(const std::shared_ptr<CommunicatorPart>&);
  /// Arrays of allocShared.
  ShownMemory& shown() { return shown_; }
  /// Calls that wait end once `above` has: see Communicator::follow.
  void follow(CommunicatorHandle& above);

  /// Runs on the caller's thread when nothing is pending, else on the queue when its turn comes,
  /// and waits.
  void runNow(const std::function<void(Communicator&)>&);

  /// Null for number 0: an operation nobody can cancel.
  std::shared_ptr<CallTicket> issueTicket(double number);
  bool cancel(double number);

  void abandon() override;
  void join() override;

 private:
  std::shared_ptr<Environment> environment_;
  /// The queued work owns them; what has run or been dropped is swept when the next is issued.
  std::unordered_map<double, std::weak_ptr<CallTicket>> tickets_;
  std::atomic<bool> cancelled_ = false;
  bool closed_ = false;
  /// Asked for once: this is on the path of the shortest calls.
  std::optional<std::vector<int>> gpus_;
  /// Guards communicator_ while connect(), on the queue's thread, and abandon() may meet.
  std::mutex connecting_;
  /// What communicator_ follows, and so outlives it.
  std::shared_ptr<Communicator> above_;
  /// Null after release(); memory of its that is still in use elsewhere keeps it.
  std::shared_ptr<Communicator> communicator_;
  JoinableCommunicator* joinable_ = nullptr;
  ShownMemory shown_;
  std::vector<std::weak_ptr<CommunicatorPart>> parts_;
  Fusion fusion_;
  /// Last, so destroyed first: its thread uses everything above.
  WorkQueue queue_;
};

}  // namespace gradlink::binding

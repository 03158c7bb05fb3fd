#include "binding/communicator/handle.h"

#include <future>
#include <utility>

#include "core/error.h"
#include "cuda/ranks/staged_communicator.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

namespace {

Error wasClosed() {
  return {ErrorCode::closed, "this communicator was closed: make a new one to go on"};
}

}  // namespace

nccl::NcclCommunicator& gpuRanks(Communicator& communicator, const char* op) {
  auto* const ranks = dynamic_cast<nccl::NcclCommunicator*>(&communicator);
  if (ranks == nullptr) throw unsupported(op, "only ranks of NCCL have it");
  return *ranks;
}

CommunicatorHandle::CommunicatorHandle(Environment& environment,
                                       std::unique_ptr<Communicator> communicator)
    : environment_(environment.shared_from_this()), communicator_(std::move(communicator)) {
  environment_->add(this);
}

CommunicatorHandle::CommunicatorHandle(Environment& environment)
    : CommunicatorHandle(environment, nullptr) {}

CommunicatorHandle::~CommunicatorHandle() {
  environment_->remove(this);
  // Operations hold the handle, so nothing is running here.
  queue_.drain();
}

void CommunicatorHandle::connect(const Join& join) {
  std::unique_ptr<Communicator> joined = join(&cancelled_);
  std::lock_guard lock(connecting_);
  communicator_ = std::move(joined);
}

std::span<const int> CommunicatorHandle::gpus() {
  if (!gpus_) {
    gpus_.emplace();
    const Communicator* const held = communicator_.get();
    if (const auto* ranks = dynamic_cast<const nccl::NcclCommunicator*>(held)) {
      for (const cuda::Device* device : ranks->devices()) gpus_->push_back(device->ordinal());
    } else if (const auto* staged = dynamic_cast<const cuda::StagedCommunicator*>(held)) {
      gpus_->push_back(staged->device().ordinal());
    }
  }
  return *gpus_;
}

Communicator& CommunicatorHandle::open() {
  if (closed_) throw wasClosed();
  fusion_.boundary();
  return *communicator_;
}

Communicator& CommunicatorHandle::communicator() {
  if (communicator_ == nullptr) throw wasClosed();
  return *communicator_;
}

void CommunicatorHandle::close() {
  if (communicator_) communicator_->close();
}

void CommunicatorHandle::abort(const std::string& reason) {
  if (communicator_) communicator_->abort(reason);
}

void CommunicatorHandle::add(const std::shared_ptr<CommunicatorPart>& part) {
  std::erase_if(parts_, [](const auto& known) { return known.expired(); });
  parts_.push_back(part);
}

void CommunicatorHandle::release(Napi::Env env) {
  for (const auto& known : parts_) {
    if (const auto part = known.lock()) part->end(env);
  }
  parts_.clear();
  shown_.takeBack(env);
  std::shared_ptr<Communicator> closed;
  {
    const std::lock_guard lock(connecting_);
    closed.swap(communicator_);
    joinable_ = nullptr;
  }
  // Before the one that it follows.
  closed.reset();
  above_.reset();
}

void CommunicatorHandle::makeJoinable() {
  if (joinable_ != nullptr) return;
  if (!gpus().empty() || communicator_->heldRanks().size() != 1) {
    throw unsupported("setJoinable", "only for one rank with arrays in host memory");
  }
  runNow([this](Communicator&) {
    std::lock_guard lock(connecting_);
    auto joinable = std::make_shared<JoinableCommunicator>(std::move(communicator_));
    joinable_ = joinable.get();
    communicator_ = std::move(joinable);
  });
}

void CommunicatorHandle::follow(CommunicatorHandle& above) {
  communicator_->follow(above.joinable_ ? above.joinable_->behind() : above.communicator());
  above_ = above.communicator_;
}

void CommunicatorHandle::runNow(const std::function<void(Communicator&)>& call) {
  if (queue_.idle()) {
    call(*communicator_);
    return;
  }
  std::promise<void> done;
  queue_.post([&] {
    try {
      call(*communicator_);
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

std::shared_ptr<CallTicket> CommunicatorHandle::issueTicket(double number) {
  if (number == 0) return nullptr;
  std::erase_if(tickets_, [](const auto& entry) { return entry.second.expired(); });
  auto ticket = std::make_shared<CallTicket>();
  tickets_[number] = ticket;
  return ticket;
}

bool CommunicatorHandle::cancel(double number) {
  const auto found = tickets_.find(number);
  if (found == tickets_.end()) return false;
  const std::shared_ptr<CallTicket> ticket = found->second.lock();
  return ticket && ticket->cancel();
}

void CommunicatorHandle::abandon() {
  cancelled_ = true;
  std::lock_guard lock(connecting_);
  if (communicator_) communicator_->leave();
}

void CommunicatorHandle::join() { queue_.drain(); }

}  // namespace gradlink::binding

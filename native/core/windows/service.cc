#include "core/windows/service.h"

#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"

namespace gradlink {
namespace {

/// How often a wait checks whether the communicator has ended.
constexpr auto kLook = std::chrono::milliseconds(20);
/// How long a leaving rank waits for its messages to be sent.
constexpr double kCloseMs = 2000;

Error lost(const char* op, int rank, const char* how) {
  return harmless(ErrorCode::peerLost, op, "rank " + std::to_string(rank) + " " + how)
      .withRank(rank);
}

std::span<const std::byte> bytesOf(const WindowRequest& request) {
  return std::as_bytes(std::span(&request, 1));
}

}  // namespace

WindowService::WindowService(std::unique_ptr<Wire> wire, std::vector<int> holders)
    : wire_(std::move(wire)),
      holders_(std::move(holders)),
      gone_(wire_ == nullptr ? 1 : static_cast<std::size_t>(wire_->size()), nullptr) {
  if (wire_ != nullptr) thread_ = std::thread([this] { run(); });
}

WindowService::~WindowService() { close(); }

void WindowService::close() {
  if (std::exchange(closed_, true)) return;
  stopping_ = true;
  if (wire_ != nullptr) {
    wire_->wake();
    thread_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = Error(ErrorCode::closed, "the communicator of the window is closed");
    }
    changed_.notify_all();
  }
  if (wire_ == nullptr) return;
  try {
    wire_->close(Deadline::in(kCloseMs));
  } catch (const Error&) {
    // The process is ending: nobody is left to notify.
  }
}

WirePart WindowService::allocate(std::size_t bytes) {
  if (wire_ == nullptr) {
    return std::shared_ptr<std::byte>(new std::byte[bytes](), std::default_delete<std::byte[]>());
  }
  return {static_cast<std::byte*>(wire_->allocate(bytes)),
          [wire = wire_](std::byte* memory) { wire->deallocate(memory); }};
}

void WindowService::serve(std::uint32_t window, int rank, std::shared_ptr<ServedWindow> served) {
  const std::lock_guard lock(mutex_);
  windows_[{window, rank}] = std::move(served);
}

void WindowService::forget(std::uint32_t window) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [&](const auto& one) { return one.first.first == window; });
}

std::shared_ptr<ServedWindow> WindowService::find(const WindowRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto at = windows_.find({request.window, request.to});
  return at == windows_.end() ? nullptr : at->second;
}

WirePart WindowService::spareOf(ServedWindow& served) {
  {
    const std::lock_guard lock(mutex_);
    for (const WirePart& part : served.spare) {
      if (part.use_count() == 1) return part;
    }
  }
  WirePart made = allocate(served.memory->bytes());
  const std::lock_guard lock(mutex_);
  return served.spare.emplace_back(std::move(made));
}

void WindowService::run() {
  try {
    WireEvents events;
    while (!stopping_) {
      events.clear();
      wire_->poll(events, Deadline::never());
      for (const WireMessage& message : events.messages) {
        WindowRequest request;
        std::memcpy(&request, message.header.data(), sizeof(request));
        take(request, message.payload);
        wire_->release(message.token);
      }
      for (const std::uint64_t ticket : events.sent) finishSend(ticket);
      for (const int process : events.lost) gone(process, "was lost: its process has ended");
      for (const int process : events.left) gone(process, "has left the communicator");
    }
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    failure_ = error;
    changed_.notify_all();
  }
}

void WindowService::post(const WindowRequest& request, const std::byte* payload, std::size_t bytes,
                         std::uint64_t ticket) {
  if (!holds(request.to)) {
    wire_->send(holder(request.to), bytesOf(request), payload, bytes, ticket);
    return;
  }
  take(request, payload);
  if (ticket != 0) finishSend(ticket);
}

void WindowService::take(const WindowRequest& request, const void* payload) {
  using What = WindowRequest::What;
  if (request.what == What::answer || request.what == What::values) {
    return finish(request, payload);
  }
  const auto served = find(request);
  try {
    if (!served) {
      throw Error(ErrorCode::invalidArgument, "window: it was freed").stillUsable();
    }
    WindowMemory& memory = *served->memory;
    switch (request.what) {
      case What::put:
      case What::accumulate:
        memory.write(request.from, payload, request.weight, request.what == What::accumulate,
                     request.withP != 0, request.p);
        return answer(request, -1);
      case What::get:
        return giveValues(request, *served);
      case What::lock:
        return answer(request, -1, memory.tryLock(request.from, request.from));
      default:
        return memory.unlock(request.from);
    }
  } catch (const Error& error) {
    // The error belongs to the requester; nobody waits for an unlock.
    if (request.what != What::unlock) {
      answer(request, static_cast<std::int32_t>(error.code));
    }
  }
}

void WindowService::answer(const WindowRequest& request, std::int32_t error, int holder) {
  WindowRequest reply;
  reply.what = WindowRequest::What::answer;
  reply.number = request.number;
  reply.from = request.to;
  reply.to = request.from;
  reply.holder = holder;
  reply.error = error;
  post(reply, nullptr, 0, 0);
}

void WindowService::giveValues(const WindowRequest& request, ServedWindow& served) {
  WirePart copy = spareOf(served);
  WindowRequest reply;
  reply.what = WindowRequest::What::values;
  reply.number = request.number;
  reply.from = request.to;
  reply.to = request.from;
  reply.p = served.memory->read(copy.get());
  std::byte* const payload = served.memory->bytes() == 0 ? nullptr : copy.get();
  std::uint64_t ticket = 0;
  if (payload != nullptr) {
    const std::lock_guard lock(mutex_);
    ticket = next_++;
    sending_.emplace(ticket, Sending{nullptr, request.from, std::move(copy)});
  }
  post(reply, payload, served.memory->bytes(), ticket);
}

void WindowService::finish(const WindowRequest& answer, const void* payload) {
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    const auto at = pending_.find(answer.number);
    // The requester has given up.
    if (at == pending_.end()) return;
    pending = at->second;
  }
  if (answer.what == WindowRequest::What::values) {
    pending.into->memory->write(pending.peer, payload, pending.weight, false, pending.withP,
                                answer.p);
  }
  const std::lock_guard lock(mutex_);
  if (pending_.erase(answer.number) == 0) return;
  Round& round = *pending.round;
  --round.open_;
  round.holder_ = answer.holder;
  if (answer.error >= 0 && !round.failure_) {
    round.failure_ =
        harmless(static_cast<ErrorCode>(answer.error), round.op_,
                 "rank " + std::to_string(pending.peer) +
                     " could not serve the request; has it freed the window or run out of memory?")
            .withRank(pending.peer);
  }
  changed_.notify_all();
}

void WindowService::finishSend(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto at = sending_.find(ticket);
  if (at == sending_.end()) return;
  if (at->second.round != nullptr) --at->second.round->open_;
  sending_.erase(at);
  changed_.notify_all();
}

void WindowService::gone(int process, const char* how) {
  const std::lock_guard lock(mutex_);
  gone_[static_cast<std::size_t>(process)] = how;
  for (auto& [number, pending] : pending_) {
    if (holder(pending.peer) == process && !pending.round->failure_) {
      pending.round->failure_ = lost(pending.round->op_, pending.peer, how);
    }
  }
  changed_.notify_all();
}

void WindowService::checkHere(const char* op, int rank) {
  const std::lock_guard lock(mutex_);
  if (const char* how = gone_[static_cast<std::size_t>(holder(rank))]) throw lost(op, rank, how);
}

void WindowService::Round::ask(int peer, WindowRequest request, const WirePart& payload,
                               std::size_t bytes, std::shared_ptr<ServedWindow> into) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(service_.mutex_);
    if (service_.failure_) throw Error(*service_.failure_).withOp(op_);
    if (const char* how = service_.gone_[static_cast<std::size_t>(service_.holder(peer))]) {
      throw lost(op_, peer, how);
    }
    request.number = service_.next_++;
    request.from = rank_;
    request.to = peer;
    if (request.what != WindowRequest::What::unlock) {
      service_.pending_.emplace(
          request.number, Pending{this, peer, request.weight, request.withP != 0, std::move(into)});
      ++open_;
    }
    if (payload != nullptr && bytes > 0) {
      ticket = service_.next_++;
      service_.sending_.emplace(ticket, Sending{this, peer, payload});
      ++open_;
    }
  }
  service_.post(request, ticket == 0 ? nullptr : payload.get(), ticket == 0 ? 0 : bytes, ticket);
}

int WindowService::Round::wait(Communicator& communicator, Deadline deadline) {
  std::unique_lock lock(service_.mutex_);
  for (;;) {
    if (failure_) throw Error(*failure_);
    if (open_ == 0) return holder_;
    if (service_.failure_) throw Error(*service_.failure_).withOp(op_);
    if (deadline.passed()) {
      int peer = -1;
      for (const auto& [number, pending] : service_.pending_) {
        if (pending.round == this) {
          peer = pending.peer;
          break;
        }
      }
      throw harmless(ErrorCode::timeout, op_,
                     "the deadline has passed waiting for rank " + std::to_string(peer) +
                         "; timeoutMs sets the deadline")
          .withRank(peer);
    }
    if (service_.changed_.wait_until(lock,
                                     std::min(deadline.at(), Deadline::Clock::now() + kLook)) ==
        std::cv_status::timeout) {
      lock.unlock();
      communicator.check(op_);
      lock.lock();
    }
  }
}

WindowService::Round::~Round() {
  const std::lock_guard lock(service_.mutex_);
  std::erase_if(service_.pending_, [&](const auto& one) { return one.second.round == this; });
  // Pending sends keep their memory.
  for (auto& [ticket, sending] : service_.sending_) {
    if (sending.round == this) sending.round = nullptr;
  }
}

}  // namespace gradlink

#include "messages/message_wire.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/futex.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

/// Payloads up to this size are part of their frame.
constexpr std::size_t kInlineBytes = 8 << 10;
constexpr std::size_t kFrameBytes = 16 + Wire::kMostHeaderBytes + 16 + kInlineBytes;
/// Posted frames, which MPI fills without another copy.
constexpr std::size_t kPosted = 16;
/// MPI makes progress only in calls.
constexpr std::chrono::nanoseconds kLongestNapUnderWay = std::chrono::microseconds(50);

/// A rank that never waits here looks this often before it checks who is gone.
constexpr std::uint32_t kGlancesBetween = 64;

constexpr std::size_t payloadAt(std::size_t headerBytes) {
  return (16 + headerBytes + 15) / 16 * 16;
}

}  // namespace

MpiWire::MpiWire(CommHandle comm)
    : link_(comm),
      incoming_(static_cast<std::size_t>(link_.size())),
      left_(static_cast<std::size_t>(link_.size())),
      bytesSent_(static_cast<std::size_t>(link_.size())),
      bytesReceived_(static_cast<std::size_t>(link_.size())) {
  while (posted_.size() < kPosted) post();
  Runtime::get().watch(this);
}

MpiWire::~MpiWire() {
  close(Deadline::in(0));
  Runtime::get().unwatch(this);
  for (Incoming* message : delivered_) delete message;
  for (void* memory : memory_) std::free(memory);
}

void MpiWire::atEnd() {
  std::vector<RequestHandle> receives;
  std::vector<RequestHandle> none;
  for (const Posted& posted : posted_) receives.push_back(posted.request);
  link_.giveUp(receives, none);
}

void MpiWire::post() {
  Posted posted{{}, buffers_.take(kFrameBytes)};
  link_.irecv(posted.frame.data(), kFrameBytes, kAnySourceOfShim, kFrameTag, &posted.request);
  posted_.push_back(std::move(posted));
}

void* MpiWire::allocate(std::size_t bytes) {
  const std::size_t rounded = std::max<std::size_t>((bytes + 63) / 64 * 64, 64);
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(64, rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::outOfMemory,
                "no memory for " + std::to_string(bytes) + " bytes of a wire");
  }
  std::memset(memory, 0, rounded);
  std::lock_guard lock(mutex_);
  memory_.insert(memory);
  return memory;
}

void MpiWire::deallocate(void* memory) {
  std::lock_guard lock(mutex_);
  if (memory_.erase(memory) > 0) std::free(memory);
}

void MpiWire::begin(Outgoing& outgoing, FrameKind kind, std::span<const std::byte> header,
                    const void* payload, std::size_t bytes) {
  const bool isInline = bytes <= kInlineBytes;
  const std::size_t at = payloadAt(header.size());
  const std::size_t frameBytes = at + (isInline ? bytes : 0);
  outgoing.frame = buffers_.take(frameBytes);
  std::byte* frame = outgoing.frame.data();
  const FrameHead head{kind, static_cast<std::uint32_t>(header.size()), bytes};
  std::memcpy(frame, &head, sizeof(head));
  if (!header.empty()) std::memcpy(frame + sizeof(head), header.data(), header.size());
  if (isInline && bytes > 0) std::memcpy(frame + at, payload, bytes);
  outgoing.requests.emplace_back();
  link_.isend(frame, frameBytes, outgoing.destination, kFrameTag, &outgoing.requests.back());
  const auto* from = static_cast<const std::byte*>(payload);
  for (std::size_t done = 0; !isInline && done < bytes;) {
    const std::size_t length = std::min(kMostMessageBytes, bytes - done);
    outgoing.requests.emplace_back();
    link_.isend(from + done, length, outgoing.destination, kPayloadTag, &outgoing.requests.back());
    done += length;
  }
}

void MpiWire::send(int destination, std::span<const std::byte> header, const void* payload,
                   std::size_t bytes, std::uint64_t ticket) {
  if (destination < 0 || destination >= size()) {
    throw misuse("send", std::to_string(destination) + " is not a rank of this wire");
  }
  if (header.size() > kMostHeaderBytes) {
    throw Error(ErrorCode::invalidArgument, "a wire's header has at most " +
                                                std::to_string(kMostHeaderBytes) + " bytes, got " +
                                                std::to_string(header.size()));
  }
  const InUse inUse("send");
  bool hasEvent = true;
  {
    std::lock_guard lock(mutex_);
    const auto to = static_cast<std::size_t>(destination);
    if (closed_ || left_[to]) {
      if (ticket != 0) sent_.push_back(ticket);
    } else {
      bytesSent_[to] += header.size() + bytes;
      Outgoing outgoing{destination, ticket, {}, {}};
      begin(outgoing, FrameKind::message, header, payload, bytes);
      if (bytes <= kInlineBytes) {
        // The frame has a copy: the caller's memory is free.
        if (ticket != 0) sent_.push_back(std::exchange(outgoing.ticket, 0));
        hasEvent = ticket != 0;
      }
      if (done(outgoing.requests)) {
        if (outgoing.ticket != 0) sent_.push_back(outgoing.ticket);
        buffers_.give(std::move(outgoing.frame));
      } else {
        fresh_.push_back(std::move(outgoing));
        hasEvent = true;
      }
    }
  }
  if (hasEvent) {
    events_.fetch_add(1);
    if (asleep_.load()) futexWake(&events_);
  }
}

bool MpiWire::done(std::vector<RequestHandle>& requests) {
  std::erase_if(requests, [&](RequestHandle& request) { return link_.test(&request); });
  return requests.empty();
}

void MpiWire::release(std::uint64_t token) {
  auto* message = reinterpret_cast<Incoming*>(static_cast<std::uintptr_t>(token));
  {
    std::lock_guard lock(mutex_);
    delivered_.erase(message);
  }
  buffers_.give(std::move(message->frame));
  buffers_.give(std::move(message->payload));
  delete message;
}

// Takes one received frame and posts the receive of its payload. Payloads have the order of frames.
bool MpiWire::arrive() {
  MessageStatus status;
  if (!link_.test(&posted_.front().request, &status)) return false;
  auto message = std::make_unique<Incoming>();
  message->source = status.source;
  message->frame = std::move(posted_.front().frame);
  posted_.pop_front();
  post();
  std::memcpy(&message->head, message->frame.data(), sizeof(FrameHead));
  const std::size_t bytes = message->head.payloadBytes;
  if (bytes > kInlineBytes) {
    message->payload = buffers_.take(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t length = std::min(kMostMessageBytes, bytes - done);
      message->requests.emplace_back();
      link_.irecv(message->payload.data() + done, length, message->source, kPayloadTag,
                  &message->requests.back());
      done += length;
    }
  }
  incoming_[static_cast<std::size_t>(message->source)].push_back(std::move(message));
  ++underway_;
  return true;
}

bool MpiWire::deliver(WireEvents& events) {
  bool any = false;
  for (auto& queue : incoming_) {
    while (underway_ > 0 && !queue.empty() && done(queue.front()->requests)) {
      std::unique_ptr<Incoming> message = std::move(queue.front());
      queue.pop_front();
      --underway_;
      any = true;
      const auto source = static_cast<std::size_t>(message->source);
      std::lock_guard lock(mutex_);
      if (message->head.kind == FrameKind::left) {
        left_[source] = true;
        events.left.push_back(message->source);
        buffers_.give(std::move(message->frame));
        continue;
      }
      const FrameHead& head = message->head;
      bytesReceived_[source] += head.headerBytes + head.payloadBytes;
      std::byte* frame = message->frame.data();
      const void* payload = head.payloadBytes == 0 ? nullptr
                            : message->payload.data() != nullptr
                                ? message->payload.data()
                                : frame + payloadAt(head.headerBytes);
      events.messages.push_back(
          {message->source,
           {frame + sizeof(FrameHead), head.headerBytes},
           payload,
           head.payloadBytes,
           static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(message.get()))});
      delivered_.insert(message.release());
    }
  }
  return any;
}

// Completes sends that are done or whose receiver has left, even if MPI still holds those.
void MpiWire::finish(WireEvents& events) {
  for (std::size_t i = 0; i < outgoing_.size();) {
    Outgoing& outgoing = outgoing_[i];
    const bool over = done(outgoing.requests);
    if (outgoing.ticket != 0 && (over || left_[static_cast<std::size_t>(outgoing.destination)])) {
      events.sent.push_back(std::exchange(outgoing.ticket, 0));
    }
    if (!over) {
      ++i;
      continue;
    }
    buffers_.give(std::move(outgoing.frame));
    std::swap(outgoing_[i], outgoing_.back());
    outgoing_.pop_back();
  }
}

void MpiWire::takeSent(WireEvents& events) {
  std::lock_guard lock(mutex_);
  events.sent.insert(events.sent.end(), sent_.begin(), sent_.end());
  sent_.clear();
  std::move(fresh_.begin(), fresh_.end(), std::back_inserter(outgoing_));
  fresh_.clear();
}

/// For transports that outlive a dead process.
void MpiWire::notice(WireEvents& events) {
  const Shim& mpi = shim();
  if (mpi.goneAbove == nullptr) return;
  for (int r = mpi.goneAbove(link_.comm(), -1); r >= 0; r = mpi.goneAbove(link_.comm(), r)) {
    // Everything that it sent is here and is delivered first.
    while (arrive()) continue;
    if (underway_ > 0) deliver(events);
    const auto at = static_cast<std::size_t>(r);
    if (left_[at]) continue;
    std::vector<RequestHandle> receives;
    std::vector<RequestHandle> none;
    for (const auto& message : incoming_[at]) {
      receives.insert(receives.end(), message->requests.begin(), message->requests.end());
    }
    link_.giveUp(receives, none);
    underway_ -= incoming_[at].size();
    incoming_[at].clear();
    events.lost.push_back(r);
    const std::lock_guard lock(mutex_);
    left_[at] = true;
  }
}

void MpiWire::poll(WireEvents& events, Deadline until) {
  const InUse inUse("poll");
  Pause pause;
  for (;;) {
    const std::uint32_t seen = events_.load();
    takeSent(events);
    while (arrive()) pause.reset();
    if (underway_ > 0) deliver(events);
    finish(events);
    if (woken_.exchange(false) || !events.empty()) return;
    const std::chrono::nanoseconds nap = pause.nap();
    if (nap.count() == 0) {
      if (!until.passed()) continue;
      // Without waits, gone ranks are checked for here.
      if (++glances_ % kGlancesBetween == 0) notice(events);
      return;
    }
    if (!Runtime::get().running()) {
      throw Error(ErrorCode::closed, "the wire is closed: the process is ending").withOp("poll");
    }
    notice(events);
    if (!events.empty() || until.passed()) return;
    const bool busy = underway_ > 0 || !outgoing_.empty();
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(until.at() - Deadline::Clock::now());
    const auto most = std::min(busy ? std::min(nap, kLongestNapUnderWay) : nap, left);
    asleep_.store(true);
    if (events_.load() == seen) {
      const timespec time{0, std::max<long>(most.count(), 1)};
      syscall(SYS_futex, &events_, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
    }
    asleep_.store(false);
    if (events_.load() != seen) pause.reset();
  }
}

void MpiWire::wake() {
  woken_.store(true);
  events_.fetch_add(1);
  if (asleep_.load()) futexWake(&events_);
}

std::vector<std::uint64_t> MpiWire::bytesSent() const {
  std::lock_guard lock(mutex_);
  return bytesSent_;
}

std::vector<std::uint64_t> MpiWire::bytesReceived() const {
  std::lock_guard lock(mutex_);
  return bytesReceived_;
}

void MpiWire::close(Deadline until) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  if (!Runtime::get().running()) return;
  const InUse inUse("close");
  WireEvents unheard;
  Pause pause;
  // Received messages are dropped, so the peers' sends end, too.
  const auto drain = [&] {
    takeSent(unheard);
    while (arrive()) pause.reset();
    if (underway_ > 0) deliver(unheard);
    finish(unheard);
    for (const WireMessage& message : unheard.messages) release(message.token);
    unheard.clear();
    const bool open = std::any_of(outgoing_.begin(), outgoing_.end(), [&](const Outgoing& o) {
      return !left_[static_cast<std::size_t>(o.destination)];
    });
    return !open || until.passed();
  };
  while (!drain()) pause.after();
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || left_[static_cast<std::size_t>(r)]) continue;
    Outgoing goodbye{r, 0, {}, {}};
    begin(goodbye, FrameKind::left, {}, nullptr, 0);
    outgoing_.push_back(std::move(goodbye));
  }
  while (!drain()) pause.after();

  std::vector<RequestHandle> receives;
  std::vector<RequestHandle> sends;
  for (const Posted& posted : posted_) receives.push_back(posted.request);
  for (auto& queue : incoming_) {
    for (auto& message : queue) {
      receives.insert(receives.end(), message->requests.begin(), message->requests.end());
    }
  }
  for (Outgoing& outgoing : outgoing_) {
    sends.insert(sends.end(), outgoing.requests.begin(), outgoing.requests.end());
  }
  const bool clean = sends.empty();
  link_.giveUp(receives, sends);
  // MPI may still read the messages that were not sent.
  if (!clean) {
    for (Outgoing& outgoing : outgoing_) static_cast<void>(outgoing.frame.memory.release());
  }
  posted_.clear();
  for (auto& queue : incoming_) queue.clear();
  Runtime::get().unwatch(this);
  link_.close(clean);
}

}  // namespace gradlink::messages

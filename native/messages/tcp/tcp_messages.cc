// Sends, receives, and messages without a receive yet.
#include <algorithm>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "messages/tcp/tcp_engine.h"

namespace gradlink::messages::tcp {

void Engine::fill(Request& request, const std::byte* data, std::size_t bytes) {
  if (bytes > request.bytes) {
    request.error = numberOf(Error(ErrorCode::system, "a message of " + std::to_string(bytes) +
                                                          " bytes for a buffer of " +
                                                          std::to_string(request.bytes)));
  } else if (bytes > 0) {
    copyBytes(request.to, data, bytes);
  }
  finish(request, bytes);
}

void Engine::finish(Request& request, std::size_t bytes) {
  request.status.bytes = bytes;
  request.done = true;
}

void Engine::deliverToSelf(std::uint64_t context, const void* data, std::size_t bytes, int tag) {
  Mailbox& box = mailboxes_[context];
  const auto* from = static_cast<const std::byte*>(data);
  if (Request* const request = box.takePosted(settings_.rank, tag)) {
    return fill(*request, from, bytes);
  }
  Unexpected kept{.tag = tag, .bytes = bytes, .data = nullptr, .peer = settings_.rank};
  kept.data.reset(new std::byte[bytes + 1]);
  copyBytes(kept.data.get(), from, bytes);
  box.keep(std::move(kept));
}

Request* Engine::send(std::uint64_t context, const void* data, std::size_t bytes, int to, int tag) {
  auto request = std::make_unique<Request>();
  request->peer = to;
  request->from = static_cast<const std::byte*>(data);
  request->bytes = bytes;
  request->context = context;
  request->tag = tag;
  if (to == settings_.rank) {
    deliverToSelf(context, data, bytes, tag);
    sent(*request);
    return request.release();
  }
  Outgoing outgoing;
  outgoing.head = {.tag = tag, .context = context, .bytes = bytes};
  if (bytes <= kMostAtOnce) {
    outgoing.head.kind = FrameKind::message;
    outgoing.data = bytes > 0 ? request->from : nullptr;
    outgoing.request = request.get();
  } else {
    request->id = ++lastId_;
    outgoing.head.kind = FrameKind::offer;
    outgoing.head.id = request->id;
    if (peerOf(to).gone) {
      sent(*request);
      return request.release();
    }
    offers_[request->id] = request.get();
  }
  push(to, std::move(outgoing));
  return request.release();
}

void Engine::acceptOffer(Request& request, int peer, std::uint64_t id, std::size_t bytes) {
  Outgoing outgoing;
  outgoing.head = {.kind = FrameKind::accept, .bytes = bytes, .id = id, .other = 0};
  if (bytes > request.bytes) {
    // Tells the sender that the message is not wanted.
    outgoing.head.bytes = 0;
    fill(request, nullptr, bytes);
  } else {
    request.id = ++lastId_;
    request.peer = peer;
    awaited_[request.id] = {&request, peer, bytes};
    outgoing.head.other = request.id;
  }
  push(peer, std::move(outgoing));
}

Request* Engine::receive(std::uint64_t context, void* data, std::size_t bytes, int source,
                         int tag) {
  auto request = std::make_unique<Request>();
  request->receives = true;
  request->source = source;
  request->tag = tag;
  request->to = static_cast<std::byte*>(data);
  request->bytes = bytes;
  request->context = context;
  Mailbox& box = mailboxes_[context];
  const auto at = box.find(source, tag);
  if (at == box.none()) {
    box.post(*request);
    return request.release();
  }
  const Unexpected message = box.take(at);
  request->status.source = message.source;
  request->status.tag = message.tag;
  if (message.offered) {
    acceptOffer(*request, message.peer, message.id, message.bytes);
  } else {
    fill(*request, message.data.get(), message.bytes);
  }
  return request.release();
}

bool Engine::allows(const Connection& connection, const FrameHead& head) const {
  const int peer = connection.peer();
  const bool fromRankZero = peer == 0 && !met_;
  switch (head.kind) {
    case FrameKind::message:
      return head.bytes <= kMostAtOnce;
    case FrameKind::offer:
      return head.bytes > kMostAtOnce && head.id != 0;
    case FrameKind::accept: {
      const auto at = offers_.find(head.id);
      // The sender may have given it up.
      if (at == offers_.end()) return head.id != 0 && head.id <= lastId_;
      const Request& offer = *at->second;
      return offer.peer == peer && (head.other == 0 || head.bytes == offer.bytes);
    }
    case FrameKind::payload: {
      const auto at = awaited_.find(head.id);
      if (at == awaited_.end() || at->second.peer != peer) return false;
      return head.bytes == at->second.bytes || head.bytes == 0;
    }
    case FrameKind::table:
      return fromRankZero && head.bytes == peers_.size() * sizeof(Entry);
    case FrameKind::failed:
      return fromRankZero && head.bytes <= kMostReasonBytes && head.tag >= -1 &&
             head.tag < settings_.size && head.id <= static_cast<std::uint64_t>(ErrorCode::system);
    case FrameKind::bye:
      return head.bytes == 0;
  }
  return false;
}

Landing Engine::land(Connection& connection, const FrameHead& head) {
  Landing landing;
  if (head.kind == FrameKind::message) {
    Request* const request = mailboxes_[head.context].takePosted(connection.peer(), head.tag);
    if (request != nullptr && head.bytes <= request->bytes) {
      landing.request = request;
      landing.to = request->to;
      return landing;
    }
    if (request != nullptr) {
      // Longer than its buffer: the bytes are dropped.
      fill(*request, nullptr, head.bytes);
      return landing;
    }
  } else if (head.kind == FrameKind::payload) {
    const auto at = awaited_.find(head.id);
    if (at->second.request != nullptr) {
      landing.request = at->second.request;
      landing.to = landing.request->to;
    }
    awaited_.erase(at);
    return landing;
  } else if (head.kind == FrameKind::offer || head.kind == FrameKind::accept) {
    return landing;
  }
  // At most what allows() has let through.
  landing.own.reset(new std::byte[head.bytes + 1]);
  landing.to = landing.own.get();
  return landing;
}

void Engine::landed(Connection& connection, const FrameHead& head, Landing landing) {
  const int peer = connection.peer();
  switch (head.kind) {
    case FrameKind::message:
      return arrived(peer, head, std::move(landing));
    case FrameKind::offer: {
      Mailbox& box = mailboxes_[head.context];
      if (Request* const request = box.takePosted(peer, head.tag)) {
        return acceptOffer(*request, peer, head.id, head.bytes);
      }
      return box.keep({.tag = head.tag,
                       .bytes = head.bytes,
                       .data = nullptr,
                       .offered = true,
                       .peer = peer,
                       .id = head.id});
    }
    case FrameKind::accept:
      return accepted(peer, head);
    case FrameKind::payload:
      if (landing.request == nullptr) return;
      if (head.bytes == 0) {
        landing.request->error =
            numberOf(Error(ErrorCode::system, "the sender of a message has cancelled it"));
      }
      return finish(*landing.request, head.bytes);
    case FrameKind::table:
      if (!takeTable({landing.own.get(), landing.own.get() + head.bytes})) {
        connection.refuse("its table of ranks has invalid addresses");
      }
      return;
    case FrameKind::failed:
      refusal_.assign(reinterpret_cast<const char*>(landing.own.get()), head.bytes);
      refusedRank_ = head.tag;
      refusedCode_ = static_cast<ErrorCode>(head.id);
      return;
    case FrameKind::bye:
      return;
  }
}

void Engine::arrived(int peer, const FrameHead& head, Landing landing) {
  if (landing.request != nullptr) return finish(*landing.request, head.bytes);
  if (landing.own == nullptr) return;  // too long, or its receive was given up
  Mailbox& box = mailboxes_[head.context];
  // Its receive was posted while it came.
  if (Request* const request = box.takePosted(peer, head.tag)) {
    return fill(*request, landing.own.get(), head.bytes);
  }
  box.keep({.tag = head.tag, .bytes = head.bytes, .data = std::move(landing.own), .peer = peer});
}

void Engine::accepted(int peer, const FrameHead& head) {
  const auto at = offers_.find(head.id);
  Outgoing outgoing;
  outgoing.head = {.kind = FrameKind::payload, .id = head.other};
  if (at != offers_.end()) {
    Request& request = *at->second;
    offers_.erase(at);
    if (head.other == 0) return sent(request);
    outgoing.head.bytes = request.bytes;
    outgoing.data = request.from;
    outgoing.request = &request;
  }
  if (head.other != 0) push(peer, std::move(outgoing));
}

void Engine::cancel(Request& request) {
  if (request.done || !request.receives) return;
  mailboxes_[request.context].unpost(request);
  if (const auto at = awaited_.find(request.id); at != awaited_.end()) {
    at->second.request = nullptr;
    if (peerOf(at->second.peer).gone) awaited_.erase(at);
  }
  for (const auto& [fd, connection] : connections_) connection->forget(request);
  request.done = true;
}

void Engine::release(Request* request) {
  const std::unique_ptr<Request> owned(request);
  offers_.erase(owned->id);
  for (const auto& [fd, connection] : connections_) connection->forget(*owned);
  for (Outgoing& each : peerOf(owned->peer).waiting) {
    if (each.request == owned.get()) each.keepOwn();
  }
}

}  // namespace gradlink::messages::tcp

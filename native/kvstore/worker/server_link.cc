#include "kvstore/worker/server_link.h"
#include "core/kernels/copy_bytes.h"

#include <cstring>
#include <utility>

namespace gradlink::dist {
namespace {

/// Only one thread adds.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t bytes) {
  counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

}  // namespace

ServerLink::ServerLink(std::unique_ptr<Wire> wire, int workers, int servers)
    : wire_(std::move(wire)),
      workers_(workers),
      servers_(servers),
      buffers_(*wire_),
      sent_(static_cast<std::size_t>(servers)),
      received_(static_cast<std::size_t>(servers)) {}

std::string ServerLink::nameOf(int rank) const {
  return rank < workers_ ? "worker " + std::to_string(rank)
                         : "server " + std::to_string(rank - workers_);
}

void ServerLink::send(int server, const Header& header) {
  sendPayload(server, header, nullptr, 0, 0);
}

void ServerLink::send(int server, const Header& header, WireBuffer* buffer, std::size_t bytes) {
  sendPayload(server, header, buffer->memory, bytes, WireBuffers::ticketOf(buffer));
}

void ServerLink::send(int server, const Header& header, std::span<const std::uint8_t> payload) {
  if (payload.empty()) return send(server, header);
  WireBuffer* const buffer = buffers_.take(payload.size(), false);
  copyBytes(buffer->memory, payload.data(), payload.size());
  send(server, header, buffer, payload.size());
}

void ServerLink::sendPayload(int server, const Header& header, const void* payload,
                             std::size_t bytes, std::uint64_t ticket) {
  wire_->send(workers_ + server, std::as_bytes(std::span(&header, 1)), payload, bytes, ticket);
  add(sent_[static_cast<std::size_t>(server)], sizeof header + bytes);
}

void ServerLink::poll(WireEvents& events, Deadline until) {
  wire_->poll(events, until);
  for (const WireMessage& message : events.messages) {
    const int server = serverOf(message.source);
    if (server < 0) continue;
    add(received_[static_cast<std::size_t>(server)], message.header.size() + message.bytes);
  }
}

std::vector<std::uint64_t> ServerLink::read(const Counters& counters) {
  std::vector<std::uint64_t> values;
  for (const auto& counter : counters) values.push_back(counter.load(std::memory_order_relaxed));
  return values;
}

}  // namespace gradlink::dist

#include "messages/tcp/tcp_engine.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace gradlink::messages::tcp {
namespace {

constexpr int kMostEvents = 64;
/// Unproven connections; beyond this the oldest is dropped.
constexpr std::size_t kMostStrangers = 256;
/// Accepted in one turn, so that earlier ones can prove themselves in between.
constexpr int kMostWelcomed = 32;
/// Strangers at the other side may push out a rank, which then retries.
constexpr int kMostRefusals = 64;
/// How long queued data may take to be sent when the process ends.
constexpr double kFlushMs = 2000;
constexpr double kLastLookMs = 200;
constexpr const char* kNoFiles =
    "this process has reached its limit of open files and cannot connect to it: raise ulimit -n";

}  // namespace

Engine::Engine(Settings settings)
    : settings_(std::move(settings)),
      own_(ownAddressOf(settings_.own)),
      host_(hostIdentity()),
      peers_(static_cast<std::size_t>(settings_.size)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.open()) throw systemError("join: no epoll", errno);
}

Hello Engine::hello(int to) const {
  Hello own;
  own.rank = settings_.rank;
  own.size = settings_.size;
  own.peer = to;
  own.port = static_cast<std::uint16_t>(listenerPort_);
  own.sealsAll = settings_.sealsAll ? 1 : 0;
  own.host = host_;
  return own;
}

int Engine::numberOf(const Error& error) {
  failures_.push_back(error);
  return static_cast<int>(failures_.size());
}

void Engine::watch(int fd, bool writes, bool fresh) {
  epoll_event event{};
  event.events = EPOLLIN | (writes ? EPOLLOUT : 0u);
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

void Engine::begin(int to) {
  Peer& peer = peerOf(to);
  if (peer.connecting) return;
  Fd socket = connectTo(peer.entry.address, own_);
  if (!socket.open()) {
    if (peer.connections > 0) return;
    if (noMoreFiles(errno)) peer.trouble = kNoFiles;
    return lose(peer, to);
  }
  peer.connecting = true;
  const int fd = socket.get();
  handshakes_[fd] = std::make_unique<Handshake>(std::move(socket), hello(to), settings_.secret);
  watch(fd, true, true);
}

void Engine::push(int to, Outgoing outgoing) {
  Peer& peer = peerOf(to);
  if (peer.sending == nullptr && !peer.gone) begin(to);
  if (peer.gone) {
    // Ranks that wait for its part learn that it is gone.
    if (outgoing.request != nullptr) sent(*outgoing.request);
    return;
  }
  if (peer.sending == nullptr) {
    peer.waiting.push_back(std::move(outgoing));
    return;
  }
  Connection& connection = *peer.sending;
  const bool wasIdle = connection.idle();
  connection.push(std::move(outgoing));
  if (wasIdle && !connection.idle()) watch(connection.socket().get(), true, false);
}

void Engine::welcome() {
  for (int i = 0; i < kMostWelcomed; ++i) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) {
      if (noMoreFiles(errno)) outOfFiles(errno);
      return;
    }
    makeRoom(kMostStrangers);
    const int fd = socket.get();
    handshakes_[fd] = std::make_unique<Handshake>(std::move(socket), settings_.rank, settings_.size,
                                                  settings_.sealsAll, settings_.secret);
    watch(fd, false, true);
    shake(fd);
  }
}

/// A connection that cannot be accepted would be reported again and again.
void Engine::outOfFiles(int errnoValue) {
  if (makeRoom(1)) return;
  const Error error =
      systemError("join: rank " + std::to_string(settings_.rank) + " cannot accept the other ranks",
                  errnoValue);
  if (!met_) {
    refusedCode_ = error.code;
    refusedRank_ = settings_.rank;
    refusal_ = error.what();
    return;
  }
  // Existing connections stay; no new one is possible.
  listener_.reset();
  for (int rank = 0; rank < settings_.size; ++rank) {
    Peer& peer = peerOf(rank);
    if (rank == settings_.rank || peer.connections > 0 || peer.connecting) continue;
    peer.trouble = kNoFiles;
    lose(peer, rank);
  }
}

/// Drops unproven connections beyond `most`. Returns whether one was dropped.
bool Engine::makeRoom(std::size_t most) {
  std::size_t strangers = 0;
  auto oldest = handshakes_.end();
  for (auto at = handshakes_.begin(); at != handshakes_.end(); ++at) {
    if (at->second->side() == Side::connecting) continue;
    ++strangers;
    if (oldest == handshakes_.end() || at->second->number() < oldest->second->number()) oldest = at;
  }
  if (strangers < most) return false;
  handshakes_.erase(oldest);
  ++unproven_;
  return true;
}

/// Turns a completed handshake into a connection.
void Engine::take(Handshake& handshake) {
  const bool ours = handshake.side() == Side::connecting;
  const int rank = ours ? handshake.hello().peer : handshake.hello().rank;
  if (!ours && rank >= settings_.size) return;
  Peer& peer = peerOf(rank);
  if (peer.trouble != nullptr) return;
  Fd socket = handshake.take();
  keepAlive(socket, settings_.keepAliveSeconds);
  const int fd = socket.get();
  auto connection = std::make_unique<Connection>(std::move(socket), rank, *this, handshake.seals());
  Connection& made = *connection;
  connections_[fd] = std::move(connection);
  ++peer.connections;
  if (ours) peer.connecting = false;
  if (peer.sending == nullptr && (ours || !peer.connecting)) {
    peer.sending = &made;
    std::deque<Outgoing> waiting = std::exchange(peer.waiting, {});
    for (Outgoing& each : waiting) made.push(std::move(each));
  }
  watch(fd, !made.idle(), false);
}

void Engine::shake(int fd) {
  const auto at = handshakes_.find(fd);
  Handshake& handshake = *at->second;
  const Handshake::Status status = handshake.go();
  if (status == Handshake::Status::underway) {
    watch(fd, handshake.writes(), false);
    return;
  }
  const std::unique_ptr<Handshake> over = std::move(at->second);
  handshakes_.erase(at);
  if (status == Handshake::Status::done) {
    if (over->side() == Side::accepting && !met_ && settings_.rank == 0) {
      Address from;
      socklen_t length = sizeof(from.raw);
      getpeername(fd, reinterpret_cast<sockaddr*>(&from.raw), &length);
      introduce(over->hello(), from);
    }
    take(*over);
    return;
  }
  if (over->side() != Side::connecting) {
    ++unproven_;
    return;
  }
  const int rank = over->hello().peer;
  Peer& peer = peerOf(rank);
  peer.connecting = false;
  // The rendezvous retries.
  if (!met_) return;
  if (over->answered() && ++peer.refused < kMostRefusals) return begin(rank);
  if (peer.connections == 0) lose(peer, rank);
}

void Engine::lose(Peer& peer, int rank) {
  peer.gone = true;
  for (const Outgoing& each : std::exchange(peer.waiting, {})) {
    if (each.request != nullptr) sent(*each.request);
  }
  std::erase_if(offers_, [&](const auto& each) {
    if (each.second->peer != rank) return false;
    each.second->done = true;
    return true;
  });
  std::erase_if(awaited_, [&](const auto& each) {
    return each.second.peer == rank && each.second.request == nullptr;
  });
}

void Engine::serve(Connection& connection) {
  connection.flush();
  connection.read();
  if (connection.trouble() != nullptr) return expel(connection.peer(), connection.trouble());
  if (connection.ended()) return end(connection);
  watch(connection.socket().get(), !connection.idle(), false);
}

void Engine::end(Connection& connection) {
  const int fd = connection.socket().get();
  Peer& peer = peerOf(connection.peer());
  if (peer.sending == &connection) peer.sending = nullptr;
  if (--peer.connections == 0 && !peer.connecting) lose(peer, connection.peer());
  for (Request* request : connection.unsent()) sent(*request);
  connections_.erase(fd);
}

void Engine::expel(int rank, const char* why) {
  Peer& peer = peerOf(rank);
  peer.trouble = why;
  std::erase_if(handshakes_, [&](const auto& each) {
    return each.second->side() == Side::connecting && each.second->hello().peer == rank;
  });
  peer.connecting = false;
  std::vector<Connection*> all;
  for (const auto& [fd, connection] : connections_) {
    if (connection->peer() == rank) all.push_back(connection.get());
  }
  for (Connection* connection : all) end(*connection);
}

void Engine::progress(int waitMs) {
  std::array<epoll_event, kMostEvents> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), kMostEvents, waitMs);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_.get()) {
      welcome();
    } else if (handshakes_.count(fd) != 0) {
      shake(fd);
    } else if (const auto at = connections_.find(fd); at != connections_.end()) {
      serve(*at->second);
    }
  }
}

int Engine::goneAbove(const Mailbox& box, int after) {
  for (int rank = after + 1; rank < box.size(); ++rank) {
    const int peer = box.jobRank(rank);
    if (peer != settings_.rank && peerOf(peer).gone) return rank;
  }
  return -1;
}

const char* Engine::whyGone(int jobRank) const {
  const char* const trouble = peerOf(jobRank).trouble;
  return trouble != nullptr ? trouble : "its connection closed";
}

bool Engine::busy() const {
  return !handshakes_.empty() || std::any_of(connections_.begin(), connections_.end(),
                                             [](const auto& each) { return !each.second->idle(); });
}

void Engine::close() {
  const auto waitUntil = [&](double mostMs, const auto& over) {
    const Deadline deadline = Deadline::in(mostMs);
    while (!over() && !deadline.passed()) progress(1);
  };
  waitUntil(kFlushMs, [&] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const auto& each) { return each.second->idle(); }) &&
           std::all_of(peers_.begin(), peers_.end(),
                       [](const Peer& peer) { return peer.waiting.empty(); });
  });
  for (const auto& [fd, connection] : connections_) {
    connection->push({});
    shutdown(fd, SHUT_WR);
  }
  // Closing a socket with unread bytes would be an error for the other side.
  waitUntil(kLastLookMs, [&] { return connections_.empty(); });
  connections_.clear();
  handshakes_.clear();
  listener_.reset();
}

void Engine::sent(Request& request) {
  request.done = true;
  request.status.bytes = request.bytes;
}

}  // namespace gradlink::messages::tcp

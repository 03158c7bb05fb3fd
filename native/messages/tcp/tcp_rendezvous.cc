// How the processes of a job meet: all connect to rank 0, which sends each the addresses of the
// others once all have come, or the reason of a failure.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/agreement.h"
#include "core/error.h"
#include "messages/tcp/tcp_engine.h"

namespace gradlink::messages::tcp {
namespace {

constexpr int kLookMs = 10;
/// Ranks that start together miss each other by little, others by seconds.
constexpr std::chrono::milliseconds kSoonest(2);
constexpr std::chrono::milliseconds kLatest(50);
/// A rank that has reached rank 0 waits for its error, which names the missing ranks.
constexpr double kFailureMs = 2000;

}  // namespace

void Engine::listen(const Address& at, PortRange ports) {
  listener_ = listenAt(at, ports);
  listenerPort_ = ownAddress(listener_).port();
  watch(listener_.get(), false, true);
}

std::vector<int> Engine::missing() const {
  std::vector<int> ranks;
  for (int r = 1; r < settings_.size; ++r) {
    if (peerOf(r).connections == 0) ranks.push_back(r);
  }
  return ranks;
}

void Engine::introduce(const Hello& hello, const Address& from) {
  const std::string who = "rank " + std::to_string(hello.rank);
  if (hello.size != settings_.size) {
    refusedCode_ = ErrorCode::mismatch;
    refusedRank_ = hello.rank;
    refusal_ = "join: " + who + " was given a job of " + std::to_string(hello.size) +
               " ranks (WORLD_SIZE), rank 0 one of " + std::to_string(settings_.size);
    return;
  }
  Peer& peer = peerOf(hello.rank);
  if (peer.connections > 0) {
    refusedCode_ = ErrorCode::mismatch;
    refusedRank_ = hello.rank;
    refusal_ = "join: two processes were started as " + who + " (RANK)";
    return;
  }
  peer.entry.address = from;
  peer.entry.address.setPort(hello.port);
  peer.entry.host = hello.host;
  // One that had given up may come again.
  peer.gone = false;
}

void Engine::refuseAll(const Error& error) {
  const std::string text = std::string(error.what()).substr(0, kMostReasonBytes);
  for (Peer& peer : peers_) {
    if (peer.sending == nullptr) continue;
    Outgoing outgoing;
    outgoing.own.resize(text.size());
    std::memcpy(outgoing.own.data(), text.data(), text.size());
    outgoing.data = outgoing.own.data();
    outgoing.head = {.kind = FrameKind::failed,
                     .tag = error.rank,
                     .bytes = text.size(),
                     .id = static_cast<std::uint64_t>(error.code)};
    peer.sending->push(std::move(outgoing));
  }
  close();
  throw Error(error);
}

void Engine::sendTable() {
  std::vector<Entry> table;
  for (const Peer& peer : peers_) table.push_back(peer.entry);
  for (Peer& peer : peers_) {
    if (peer.sending == nullptr) continue;
    Outgoing outgoing;
    outgoing.own.resize(table.size() * sizeof(Entry));
    std::memcpy(outgoing.own.data(), table.data(), outgoing.own.size());
    outgoing.data = outgoing.own.data();
    outgoing.head = {.kind = FrameKind::table, .bytes = outgoing.own.size()};
    peer.sending->push(std::move(outgoing));
    watch(peer.sending->socket().get(), !peer.sending->idle(), false);
  }
}

bool Engine::takeTable(const std::vector<std::byte>& bytes) {
  std::vector<Entry> table(peers_.size());
  std::memcpy(table.data(), bytes.data(), bytes.size());
  for (std::size_t r = 1; r < table.size(); ++r) {
    const auto family = table[r].address.raw.sin6_family;
    if ((family != AF_INET && family != AF_INET6) || table[r].address.port() == 0) return false;
  }
  for (std::size_t r = 0; r < peers_.size(); ++r) peers_[r].entry = table[r];
  // Rank 0 does not know which of its addresses is used.
  peers_[0].entry.address = master_;
  met_ = true;
  return true;
}

void Engine::lead(Deadline deadline) {
  listen(listeningAddress(settings_.address, settings_.port, own_));
  while (!missing().empty() && !deadline.passed() && refusal_.empty()) progress(kLookMs);
  if (!refusal_.empty())
    refuseAll(Error(refusedCode_, refusal_).withRank(refusedRank_).withOp("join"));
  const std::vector<int> late = missing();
  if (late.empty()) {
    met_ = true;
    return sendTable();
  }
  const std::string crowd =
      unproven_ == 0 ? ""
                     : "; connections that did not prove that they belong to this job: " +
                           std::to_string(unproven_);
  refuseAll(Error(ErrorCode::timeout, "join: " + listOfRanks(late) + " of " +
                                          std::to_string(settings_.size) + " did not join at " +
                                          settings_.address + ":" + std::to_string(settings_.port) +
                                          " within the deadline" + crowd +
                                          ". timeoutMs sets the deadline")
                .withRank(late.front())
                .withOp("join"));
}

Engine::Call Engine::callMaster(Deadline deadline) {
  try {
    master_ = resolve(settings_.address, settings_.port, own_);
  } catch (const Error& error) {
    return {error.what()};
  }
  Call nobody{"nobody listens at " + master_.text()};
  Fd socket = connectTo(master_, own_);
  if (!socket.open() && noMoreFiles(errno)) throw systemError("join: no socket", errno);
  if (!socket.open()) return nobody;
  pollfd look{socket.get(), POLLOUT, 0};
  while (poll(&look, 1, kLookMs) == 0) {
    if (deadline.passed()) return {master_.text() + " cannot be reached"};
  }
  if (connectError(socket) != 0) return nobody;
  // This host's address on the route to rank 0.
  Address own = ownAddress(socket);
  own.setPort(0);
  if (!listener_.open()) listen(own, settings_.ports);
  Peer& peer = peerOf(0);
  peer.connecting = true;
  const int fd = socket.get();
  handshakes_[fd] = std::make_unique<Handshake>(std::move(socket), hello(0), settings_.secret);
  watch(fd, true, true);
  while (peer.connecting && !deadline.passed()) progress(kLookMs);
  if (peer.connections > 0) return {};
  return {
      "the process at " + master_.text() +
          " does not answer as rank 0 of this job: does it belong to another job, were the ranks "
          "given different sizes, or has it too many connections?",
      true};
}

void Engine::follow(Deadline deadline) {
  Call call = callMaster(deadline);
  for (auto pause = kSoonest; !call.reason.empty() && !deadline.passed();
       pause = std::min(2 * pause, kLatest)) {
    std::this_thread::sleep_for(pause);
    Call again = callMaster(deadline);
    // A stranger who has gone says more than that nobody listens now.
    if (again.reason.empty() || again.stranger || !call.stranger) call = std::move(again);
  }
  if (!call.reason.empty()) {
    throw Error(ErrorCode::timeout,
                "join: rank 0 cannot be found at " + settings_.address + ":" +
                    std::to_string(settings_.port) +
                    " (MASTER_ADDR, MASTER_PORT) within the deadline: " + call.reason)
        .withRank(0)
        .withOp("join");
  }
  const bool forEver = deadline.at() == Deadline::never().at();
  const Deadline failure =
      forEver ? deadline
              : Deadline::in(kFailureMs + std::max(0.0, -secondsSince(deadline.at()) * 1000));
  while (!met_ && refusal_.empty() && !peerOf(0).gone && !failure.passed()) progress(kLookMs);
  if (met_) return;
  if (!refusal_.empty()) throw Error(refusedCode_, refusal_).withRank(refusedRank_).withOp("join");
  throw Error(peerOf(0).gone ? ErrorCode::peerLost : ErrorCode::timeout,
              peerOf(0).gone
                  ? std::string("join: rank 0 was lost before all ranks had met: ") + whyGone(0)
                  : "join: rank 0 did not say who has joined within the deadline")
      .withRank(0)
      .withOp("join");
}

void Engine::meet(double timeoutMs) {
  peerOf(settings_.rank).entry.host = host_;
  if (settings_.size > 1) {
    const Deadline deadline = Deadline::in(timeoutMs);
    if (settings_.rank == 0) {
      lead(deadline);
    } else {
      follow(deadline);
    }
  }
  met_ = true;
}

}  // namespace gradlink::messages::tcp

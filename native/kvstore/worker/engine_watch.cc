// What ends a distributed store's worker early: servers that are lost, or that do not answer.

#include <algorithm>
#include <chrono>

#include "kvstore/worker/engine.h"

namespace gradlink::dist {

using Clock = Deadline::Clock;

void DistEngine::lost(int rank, bool died) {
  if (died) lost_.fetch_add(1, std::memory_order_relaxed);
  // Of a worker that this store cannot do without the servers tell.
  if (rank < options_.workers) return;
  fail(Error(ErrorCode::peerLost,
             died ? link_.nameOf(rank) + " was lost: its process has ended"
                  : link_.nameOf(rank) + " has left while this store was in use")
           .withRank(rank));
}

Deadline::Clock::time_point DistEngine::waitsSince() const {
  const Transfer* const transfer = transfers_.oldest();
  if (transfer == nullptr) return asked_ ? asked_->begun : lastProgress_;
  return asked_ ? std::min(asked_->begun, transfer->sent) : transfer->sent;
}

void DistEngine::lookAtTime() {
  if (!isWaiting()) return;
  const auto now = Clock::now();
  const auto begun = waitsSince();
  if (presence_.ask(begun, now)) {
    for (int server = 0; server < link_.servers(); ++server) {
      link_.send(server, Header{.type = MessageType::deadNodes, .request = kPresenceRequest});
    }
  }
  std::string names;
  int blame = -1;
  for (const int server : presence_.silent(begun, now)) {
    if (blame < 0) blame = options_.workers + server;
    names += (names.empty() ? "" : ", ") + link_.nameOf(options_.workers + server);
  }
  // A server that answers has a limit of its own for workers that it waits for: it comes first.
  double limit = options_.timeoutMs;
  if (names.empty()) {
    limit = 1.25 * limit + 1000;
    if (std::chrono::duration<double, std::milli>(now - std::max(begun, lastProgress_)).count() <
        limit) {
      return;
    }
    names = "the servers, which are there,";
  }
  const Transfer* const transfer = transfers_.oldest();
  const std::string what = asked_     ? std::string(asked_->request->name)
                           : transfer ? "key " + transfer->key().name
                                      : std::string("push");
  fail(Error(ErrorCode::timeout, what + ": " + names + " did not answer within " +
                                     std::to_string(static_cast<long>(limit)) +
                                     " ms; timeoutMs sets the deadline")
           .withRank(blame));
}

void DistEngine::fail(const Error& error) { fail(std::make_exception_ptr(error)); }

void DistEngine::fail(std::exception_ptr error) {
  if (error_) return;
  over_.store(true, std::memory_order_release);
  error_ = std::move(error);
  transfers_.failAll(keys_, error_);
  if (asked_) {
    if (!asked_->error) asked_->error = error_;
    end();
  }
}

}  // namespace gradlink::dist

#include "shm/rendezvous/leader.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/memory/same_bytes.h"
#include "shm/process_segment.h"
#include "shm/rendezvous/addresses.h"
#include "shm/rendezvous/secret.h"
#include "shm/rendezvous/spare_rings.h"

namespace gradlink::shm {
namespace {

// A guest without proof by then is a stranger, or a rank that will retry.
constexpr double kProofMs = 5000;
// In addition to the ranks that may be about to prove themselves.
constexpr std::size_t kMostStrangers = 64;
// How often a leader checks the addresses before its own, if there are any.
constexpr int kAddressLookMs = 10;

}  // namespace

Leader::Leader(const JoinOptions& options, Deadline deadline, File listener, int number)
    : options_(options), deadline_(deadline), earlier_(static_cast<std::size_t>(number)) {
  listeners_.push_back(std::move(listener));
  std::iota(earlier_.begin(), earlier_.end(), 0);
}

std::optional<Membership> Leader::run() {
  SegmentFiles files =
      makeSegmentFiles(options_.size, options_.slotBytes, SpareRings::ofProcess().take(options_));
  Membership membership = enterSegment(files, options_.rank);
  while (static_cast<int>(ready_) + 1 < options_.size) {
    checkWaiting(options_, missing());
    if (deadline_.passed()) failMissing();
    if (ledElsewhere()) return std::nullopt;
    turn(files);
  }
  // Before anybody starts: the next rendezvous of this name must not find these sockets.
  listeners_.clear();
  for (auto& [descriptor, guest] : guests_) {
    if (!guest.proven()) continue;
    sendWord(guest.socket, Word::start, options_.rank, options_.size);
    hearOut(guest.socket);
  }
  membership.rings =
      SpareRings::ofProcess().keep(options_, membership.segment, std::move(files.rings));
  return membership;
}

std::vector<int> Leader::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < options_.size; ++r) {
    const bool here = std::any_of(guests_.begin(), guests_.end(),
                                  [&](const auto& g) { return g.second.rank == r; });
    if (r != options_.rank && !here) ranks.push_back(r);
  }
  return ranks;
}

void Leader::fail(const Error& error) {
  listeners_.clear();
  for (auto& [descriptor, guest] : guests_) {
    if (!guest.proven()) continue;
    sendError(guest.socket, error);
    hearOut(guest.socket);
  }
  throw error;
}

void Leader::failMissing() {
  // Silent connections count as strangers, too.
  std::size_t strangers = turnedAway_;
  for (const auto& [descriptor, guest] : guests_) strangers += guest.proven() ? 0 : 1;
  fail(missingRanks(options_, missing(), {strangers, earlier_.size()}));
}

/// Takes earlier addresses that became free. Returns whether another rank leads at one.
bool Leader::ledElsewhere() {
  if (earlier_.empty() || !nextLook_.passed()) return false;
  std::vector<int> held;
  for (const int number : earlier_) {
    Found found = lookAt(options_, number);
    if (found.holder == Holder::leader) return true;
    if (found.holder == Holder::self) {
      listeners_.push_back(std::move(found.socket));
    } else {
      held.push_back(number);
    }
  }
  earlier_ = std::move(held);
  nextLook_ = Deadline::in(kAddressLookMs);
  return false;
}

void Leader::turn(const SegmentFiles& files) {
  std::vector<pollfd> watched;
  for (const File& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  for (auto& [descriptor, guest] : guests_) watched.push_back({descriptor, POLLIN, 0});
  const int slice = pollSlice(deadline_);
  poll(watched.data(), watched.size(), earlier_.empty() ? slice : std::min(slice, kAddressLookMs));
  for (std::size_t i = listeners_.size(); i < watched.size(); ++i) {
    if (watched[i].revents != 0) hear(watched[i].fd, files);
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (watched[i].revents != 0) admit(listeners_[i]);
    dropStrangers();
  }
}

/// Admits one connection of this user; closes other users', which could fill the queue.
void Leader::admit(const File& listener) {
  for (int most = kMaxRanks; most > 0; --most) {
    File socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // A connection that cannot be accepted would keep this loop busy.
      const int failed = errno;
      if (noMoreFiles(failed) && !dropOldestStranger()) {
        const std::string me = "rank " + std::to_string(options_.rank);
        fail(systemError("join: " + me + " cannot accept the other ranks", failed)
                 .withRank(options_.rank)
                 .withOp("join"));
      }
      return;
    }
    if (!sameUser(socket)) {
      ++turnedAway_;
      continue;
    }
    const int descriptor = socket.get();
    std::string nonce = newNonce();
    if (!sendWord(socket, Word::challenge, 0, 0, nonce)) return;
    guests_[descriptor] = {std::move(socket), std::move(nonce), Deadline::in(kProofMs),
                           ++admitted_};
    return;
  }
}

/// Drops connections that took too long to prove themselves, and the oldest ones beyond the limit:
/// they would use up descriptors. A rank among them retries.
void Leader::dropStrangers() {
  std::vector<int> late;
  std::size_t strangers = 0;
  for (const auto& [descriptor, guest] : guests_) {
    if (guest.proven()) continue;
    ++strangers;
    if (guest.deadline.passed()) late.push_back(descriptor);
  }
  for (const int descriptor : late) drop(descriptor);
  strangers -= late.size();
  if (strangers > kMostStrangers + static_cast<std::size_t>(options_.size)) dropOldestStranger();
}

bool Leader::dropOldestStranger() {
  std::optional<std::pair<std::uint64_t, int>> oldest;
  for (const auto& [descriptor, guest] : guests_) {
    if (guest.proven()) continue;
    const std::pair age(guest.number, descriptor);
    oldest = std::min(oldest.value_or(age), age);
  }
  if (oldest) drop(oldest->second);
  return oldest.has_value();
}

void Leader::drop(int descriptor) {
  const Guest& guest = guests_[descriptor];
  if (guest.ready) --ready_;
  if (!guest.proven()) ++turnedAway_;
  guests_.erase(descriptor);
}

void Leader::hear(int descriptor, const SegmentFiles& files) {
  Guest& guest = guests_[descriptor];
  Packet packet;
  std::string_view text;
  const Got got = receivePacket(guest.socket, packet, text);
  if (got == Got::nothing) return;
  if (got == Got::end) return drop(descriptor);
  if (!guest.proven()) {
    if (packet.word == Word::hello && greet(guest, packet, text, files)) return;
    return drop(descriptor);
  }
  switch (packet.word) {
    case Word::ready:
      if (!guest.ready) ++ready_;
      guest.ready = true;
      return;
    case Word::gaveUp:
      failMissing();
    case Word::failed:
      fail(Error(static_cast<ErrorCode>(packet.code), std::string(text))
               .withRank(guest.rank)
               .withOp("join"));
    default:
      return drop(descriptor);
  }
}

/// Returns whether the guest is a rank of this job and was told so.
bool Leader::greet(Guest& guest, const Packet& hello, std::string_view text,
                   const SegmentFiles& files) {
  if (text.size() < kNonceBytes) return false;
  const std::string_view nonce = text.substr(0, kNonceBytes);
  const auto proof = [&](Side side) {
    return proofOf(options_, side, guest.nonce, nonce, hello.rank, hello.size);
  };
  if (!sameBytes(proof(Side::guest), text.substr(kNonceBytes))) return false;
  if (hello.rank < 0 || hello.rank >= hello.size) return false;
  const Digest own = proof(Side::leader);
  if (!sendWord(guest.socket, Word::proof, options_.rank, options_.size, digestText(own)))
    return false;
  const bool taken = hello.rank == options_.rank ||
                     std::any_of(guests_.begin(), guests_.end(),
                                 [&](const auto& g) { return g.second.rank == hello.rank; });
  guest.rank = hello.rank;
  if (hello.size != options_.size) {
    fail(sizesDiffer(options_, options_.rank, options_.size, hello.rank, hello.size));
  }
  if (taken) fail(rankTakenTwice(options_, hello.rank));
  return sendWord(guest.socket, Word::welcome, options_.rank, options_.size, {}, &files);
}

}  // namespace gradlink::shm

// Processes meet at a socket in the abstract namespace (no file to be left behind): whoever binds
// it first leads, checks everybody who comes, and hands over the segment. When all hold it the
// socket goes and the name is free again. Both sides prove that they know the job's secret before
// anything else they say counts.
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/memory/same_bytes.h"
#include "shm/process_segment.h"
#include "shm/rendezvous/addresses.h"
#include "shm/rendezvous/leader.h"
#include "shm/rendezvous/packets.h"
#include "shm/rendezvous/rendezvous.h"
#include "shm/rendezvous/secret.h"
#include "shm/rendezvous/spare_rings.h"

namespace gradlink::shm {
namespace {

// How long a rank stays at addresses whose holders cannot be told from a rank that is about to
// lead, as one that has bound and does not listen yet.
constexpr double kUnclearMs = 100;

/// A rank that found the socket bound.
class Follower {
 public:
  Follower(const JoinOptions& options, Deadline deadline, const File& socket)
      : options_(options), deadline_(deadline), socket_(socket) {}

  /// Empty when the leader was lost before all had come, or is a stranger: begin again.
  std::optional<Membership> run() {
    // Once this rank has given up, the leader tells everybody who is missing; it has this long to
    // do so.
    Deadline last = Deadline::never();
    bool gaveUp = false;
    for (;;) {
      if (deadline_.passed() && !gaveUp) {
        if (!proven_) return std::nullopt;
        gaveUp = true;
        last = Deadline::in(500);
        sendWord(socket_, Word::gaveUp, options_.rank, options_.size);
      }
      if (last.passed()) throw missingRanks(options_, {leader_});
      pollfd watched{socket_.get(), POLLIN, 0};
      poll(&watched, 1, pollSlice(gaveUp ? last : deadline_));
      Packet packet;
      std::string_view text;
      SegmentFiles passed;
      switch (receivePacket(socket_, packet, text, &passed)) {
        case Got::nothing:
          // Not before what the leader said is heard: it may have said that all are here, and
          // ended.
          checkWaiting(options_, {});
          continue;
        case Got::end:
          return std::nullopt;
        case Got::packet:
          break;
      }
      if (packet.word == Word::start && membership_) return std::move(membership_);
      if (!(proven_ ? hear(packet, text, passed) : meet(packet, text))) return std::nullopt;
    }
  }

  /// Whether the other end showed that it does not know the job's secret.
  bool metStranger() const { return stranger_; }

 private:
  /// Before the leader has proved itself. Whether it goes on.
  bool meet(const Packet& packet, std::string_view text) {
    if (packet.word == Word::challenge && nonce_.empty() && text.size() == kNonceBytes) {
      leaderNonce_ = text;
      nonce_ = newNonce();
      return sendWord(socket_, Word::hello, options_.rank, options_.size,
                      nonce_ + std::string(digestText(proof(Side::guest))));
    }
    if (packet.word == Word::proof && !nonce_.empty() && sameBytes(proof(Side::leader), text)) {
      proven_ = true;
      leader_ = packet.rank;
      return true;
    }
    stranger_ = true;
    return false;
  }

  bool hear(const Packet& packet, std::string_view text, const SegmentFiles& passed) {
    if (packet.word == Word::failed) {
      throw Error(static_cast<ErrorCode>(packet.code), std::string(text))
          .withRank(packet.rank)
          .withOp("join");
    }
    if (packet.word != Word::welcome) return true;
    try {
      // The kernel cuts off what this process may not open.
      if (!passed) throw systemError("the ranks' common memory cannot be opened", EMFILE);
      membership_ = enterSegment(passed, options_.rank);
    } catch (const Error& error) {
      std::string_view what(error.what());
      constexpr std::string_view kOp = "join: ";
      if (what.starts_with(kOp)) what.remove_prefix(kOp.size());
      const std::string text = "join: rank " + std::to_string(options_.rank) + ": ";
      const Error own =
          Error(error.code, text + std::string(what)).withRank(options_.rank).withOp("join");
      // The others need not wait for this rank.
      sendError(socket_, own);
      throw own;
    }
    return sendWord(socket_, Word::ready, options_.rank, options_.size);
  }

  Digest proof(Side side) const {
    return proofOf(options_, side, leaderNonce_, nonce_, options_.rank, options_.size);
  }

  const JoinOptions& options_;
  Deadline deadline_;
  const File& socket_;
  std::string leaderNonce_;
  std::string nonce_;
  bool proven_ = false;
  bool stranger_ = false;
  int leader_ = -1;
  std::optional<Membership> membership_;
};

}  // namespace

Membership meetProcesses(const JoinOptions& options, Deadline deadline) {
  bool stranger = false;
  std::optional<Deadline> untilPassedBy;
  for (;;) {
    int others = 0;
    int unclear = 0;
    for (int number = 0; number < kMostAddresses; ++number) {
      Found found = lookAt(options, number);
      if (found.holder == Holder::self) {
        Leader leader(options, deadline, std::move(found.socket), number);
        if (auto membership = leader.run()) return std::move(*membership);
        break;
      }
      if (found.holder == Holder::leader) {
        Follower follower(options, deadline, found.socket);
        if (auto membership = follower.run()) {
          membership->rings = SpareRings::ofProcess().use();
          return std::move(*membership);
        }
        stranger = stranger || follower.metStranger();
        break;
      }
      if (found.holder == Holder::others) {
        ++others;
        continue;
      }
      ++unclear;
      if (!untilPassedBy) untilPassedBy = Deadline::in(kUnclearMs);
      if (!untilPassedBy->passed()) break;
    }
    // Whose address is unclear may be a rank with a full queue: that is waited for.
    const bool allHeld = others + unclear == kMostAddresses;
    if (others == kMostAddresses || (allHeld && deadline.passed())) {
      throw nameIsTaken(options, "other users' processes hold all " +
                                     std::to_string(kMostAddresses) + " addresses of this name");
    }
    checkWaiting(options, {});
    if (deadline.passed()) {
      if (stranger) {
        throw nameIsTaken(options, "a process that does not know the job's secret holds this name");
      }
      throw missingRanks(options, {}, {0, static_cast<std::size_t>(others + unclear)});
    }
    // Its leader just went or is about to listen, or it is held by a stranger of this user.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradlink::shm

// Processes meet at a socket in the abstract namespace, which leaves no file behind. The process
// that binds it first leads: it checks every guest and hands over the segment. Once all have it the
// socket is closed and the name is free. Both sides first prove that they know the job's secret.
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

// How long a rank retries addresses whose holders may be ranks that do not listen yet.
constexpr double kUnclearMs = 100;

class Follower {
 public:
  Follower(const JoinOptions& options, Deadline deadline, const File& socket)
      : options_(options), deadline_(deadline), socket_(socket) {}

  /// Empty if the leader was lost before all had come, or is a stranger: the caller starts over.
  std::optional<Membership> run() {
    // After this rank has given up, the leader has this long to report who is missing.
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
          // Only after the leader's packets are read: it may have started the ranks and ended.
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

  /// Whether the peer failed to prove that it knows the job's secret.
  bool metStranger() const { return stranger_; }

 private:
  /// Handles a packet before the leader has proved itself. Returns whether to continue.
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
      // The kernel drops descriptors beyond this process's limit.
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
    // An unclear address may belong to a rank with a full queue, so it is retried.
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
    // Its leader just left or does not listen yet, or a stranger of this user holds it.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradlink::shm

// Processes meet at a socket in the abstract namespace (no file to be left behind): whoever binds
// it first leads, checks everybody who comes, and hands over the segment. When all hold it the
// socket goes and the name is free again. Both sides prove that they know the job's secret before
// anything else they say counts.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "shm/meeting/meeting.h"
#include "shm/meeting/packets.h"
#include "shm/meeting/secret.h"
#include "shm/meeting/spare_rings.h"
#include "shm/process_segment.h"

namespace gradlink::shm {
namespace {

// How long a wait may go without a look at the deadline and at `cancelled`.
constexpr int kSliceMs = 50;
// Who has not proved anything by then is no rank, or one that will come again.
constexpr double kProofMs = 5000;
// Beside the ranks that may be about to prove themselves.
constexpr std::size_t kMostStrangers = 64;

int pollSlice(Deadline deadline) {
  if (deadline.at() == Deadline::Clock::time_point::max()) return kSliceMs;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, kSliceMs));
}

/// The rank that bound the socket.
class Leader {
 public:
  Leader(const JoinOptions& options, Deadline deadline, File listener)
      : options_(options), deadline_(deadline), listener_(std::move(listener)) {}

  Membership run() {
    SegmentFiles files =
        makeSegmentFiles(options_.size, options_.slotBytes, SpareRings::ofProcess().take(options_));
    Membership membership = enterSegment(files, options_.rank);
    while (static_cast<int>(ready_) + 1 < options_.size) {
      checkWaiting(options_, missing());
      if (deadline_.passed()) fail(missingRanks(options_, missing()));
      turn(files);
    }
    // Before anybody starts: the next meeting of this name must not find this one's socket.
    listener_ = File();
    for (auto& [descriptor, guest] : guests_) {
      if (!guest.proven()) continue;
      sendWord(guest.socket, Word::start, options_.rank, options_.size);
      hearOut(guest.socket);
    }
    SpareRings::ofProcess().keep(options_, membership.segment, std::move(files.rings));
    return membership;
  }

 private:
  struct Guest {
    File socket;
    std::string nonce;  // of ours, which it proves itself with
    Deadline patience;
    std::uint64_t number = 0;
    int rank = -1;
    bool ready = false;
    bool proven() const { return rank >= 0; }
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int r = 0; r < options_.size; ++r) {
      const bool here = std::any_of(guests_.begin(), guests_.end(),
                                    [&](const auto& g) { return g.second.rank == r; });
      if (r != options_.rank && !here) ranks.push_back(r);
    }
    return ranks;
  }

  [[noreturn]] void fail(const Error& error) {
    listener_ = File();
    for (auto& [descriptor, guest] : guests_) {
      if (!guest.proven()) continue;
      sendError(guest.socket, error);
      hearOut(guest.socket);
    }
    throw error;
  }

  void turn(const SegmentFiles& files) {
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (auto& [descriptor, guest] : guests_) watched.push_back({descriptor, POLLIN, 0});
    poll(watched.data(), watched.size(), pollSlice(deadline_));
    for (std::size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) hear(watched[i].fd, files);
    }
    if (watched[0].revents != 0) admit();
    dropStrangers();
  }

  void admit() {
    File socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket || !sameUser(socket)) return;
    const int descriptor = socket.get();
    std::string nonce = newNonce();
    if (!sendWord(socket, Word::challenge, 0, 0, nonce)) return;
    guests_[descriptor] = {std::move(socket), std::move(nonce), Deadline::in(kProofMs),
                           ++admitted_};
  }

  /// Those that took too long to prove themselves, and the oldest where there are too many: they
  /// would use up this process's descriptors. A rank among them comes again.
  void dropStrangers() {
    std::size_t strangers = 0;
    std::optional<std::pair<std::uint64_t, int>> oldest;
    for (auto it = guests_.begin(); it != guests_.end();) {
      const auto& [descriptor, guest] = *it;
      if (!guest.proven() && guest.patience.passed()) {
        it = guests_.erase(it);
        continue;
      }
      if (!guest.proven()) {
        ++strangers;
        const std::pair age(guest.number, descriptor);
        oldest = std::min(oldest.value_or(age), age);
      }
      ++it;
    }
    if (strangers > kMostStrangers + static_cast<std::size_t>(options_.size)) drop(oldest->second);
  }

  void drop(int descriptor) {
    if (guests_[descriptor].ready) --ready_;
    guests_.erase(descriptor);
  }

  void hear(int descriptor, const SegmentFiles& files) {
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
        fail(missingRanks(options_, missing()));
      default:
        return drop(descriptor);
    }
  }

  /// Whether the guest is a rank of this job and was told so.
  bool greet(Guest& guest, const Packet& hello, std::string_view text, const SegmentFiles& files) {
    if (text.size() < kNonceBytes) return false;
    const std::string_view nonce = text.substr(0, kNonceBytes);
    const auto proof = [&](Side side) {
      return proofOf(options_, side, guest.nonce, nonce, hello.rank, hello.size);
    };
    if (!sameDigest(proof(Side::guest), text.substr(kNonceBytes))) return false;
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

  const JoinOptions& options_;
  Deadline deadline_;
  File listener_;
  std::map<int, Guest> guests_;
  std::size_t ready_ = 0;
  std::uint64_t admitted_ = 0;
};

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
    if (packet.word == Word::proof && !nonce_.empty() && sameDigest(proof(Side::leader), text)) {
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
    if (packet.word != Word::welcome || !passed) return true;
    membership_ = enterSegment(passed, options_.rank);
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
  const MeetingAddress address(options);
  bool stranger = false;
  for (;;) {
    File socket = makeMeetingSocket();
    if (connect(socket.get(), address.get(), address.length()) == 0) {
      if (!sameUser(socket)) throw nameIsTaken(options, "another user's process");
      Follower follower(options, deadline, socket);
      if (auto membership = follower.run()) return std::move(*membership);
      stranger = stranger || follower.metStranger();
    } else if (errno == ECONNREFUSED) {
      File listener = makeMeetingSocket();
      if (bind(listener.get(), address.get(), address.length()) == 0) {
        if (listen(listener.get(), kMaxRanks) != 0) throw systemError("join: cannot listen", errno);
        return Leader(options, deadline, std::move(listener)).run();
      }
      if (errno != EADDRINUSE) throw systemError("join: cannot bind a socket", errno);
    } else if (errno != EAGAIN && errno != EINTR) {
      throw systemError("join: cannot connect to the meeting's socket", errno);
    }
    // Bound but not listening yet, or its leader just went, or it is held by a stranger.
    checkWaiting(options, {});
    if (deadline.passed()) {
      throw stranger ? nameIsTaken(options, "a process that does not know the job's secret")
                     : missingRanks(options, {});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradlink::shm

// What tests of strangers at a rendezvous share: ranks to be disturbed, connections that say what
// the test wants, and processes of another user.
#pragma once

#include <sys/socket.h>

#include <cerrno>

#include "shm/rendezvous/packets.h"
#include "test/process/support.h"

namespace gradlink::test {

inline Child rankOf(const std::string& name, int rank, int size, double timeoutMs = 20000) {
  return Child([=]() -> std::string {
    auto options = optionsFor(name, rank, size);
    options.timeoutMs = timeoutMs;
    auto comm = shm::join(options);
    return runRank(*comm, {Op::allReduce, comm->size(), 1000});
  });
}

/// The ranks that are not `there` come too, and all of them meet.
inline void expectMeet(const std::string& name, int size, std::vector<Child*> there = {}) {
  std::vector<Child> others;
  for (int r = static_cast<int>(there.size()); r < size; ++r) {
    others.push_back(rankOf(name, r, size));
  }
  for (Child& other : others) there.push_back(&other);
  for (Child* child : there) EXPECT_EQ(child->wait(), "");
}

/// The user is in it: to be worked out before a child becomes another.
inline shm::RendezvousAddress addressOf(const std::string& name, int number = 0) {
  return {optionsFor(name, 0, 1), number};
}

/// A connection to the rendezvous's leader, which waits for the others.
inline shm::File connectTo(const shm::RendezvousAddress& address) {
  shm::File socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  waitUntil([&] { return connect(socket.get(), address.get(), address.length()) == 0; });
  return socket;
}

inline shm::File connectTo(const std::string& name) { return connectTo(addressOf(name)); }

inline bool closedByOther(const shm::File& socket) {
  char byte[2048];
  ssize_t got;
  while ((got = recv(socket.get(), byte, sizeof(byte), 0)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

/// What the leader challenges a connection with.
inline std::string challengeOf(const shm::File& socket) {
  shm::Packet packet;
  std::string_view text;
  while (shm::receivePacket(socket, packet, text) != shm::Got::packet) {
  }
  EXPECT_EQ(packet.word, shm::Word::challenge);
  return std::string(text);
}

/// What a rank says to prove itself, after that challenge.
inline std::string proofText(const shm::JoinOptions& options, std::string_view challenge, int rank,
                             int size) {
  const std::string nonce(shm::kNonceBytes, 'n');
  const Digest proof = shm::proofOf(options, shm::Side::guest, challenge, nonce, rank, size);
  return nonce + std::string(digestText(proof));
}

inline bool canBecomeAnother() { return geteuid() == 0; }

/// For a child: from then on it is a process of another user than the ranks'.
inline void becomeAnother() {
  constexpr int kNobody = 65534;
  if (setgid(kNobody) != 0 || setuid(kNobody) != 0) std::abort();
}

}  // namespace gradlink::test

// What processes that meet say to each other: packets over a socket, with the memory's descriptors
// in one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "shm/process_segment.h"

namespace gradlink::shm {

enum class Word : std::uint32_t {
  hello = 1,  // of a guest: its nonce and its proof
  welcome,    // of the leader: the memory
  ready,      // of a guest: it has the memory
  gaveUp,     // of a guest: its deadline has passed
  start,      // of the leader: all are ready
  failed,     // of either: why there will be no rendezvous
  challenge,  // of the leader, before anything else: its nonce
  proof,      // of the leader: its proof
};

/// Every packet starts so.
struct Packet {
  Word word;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t code;
  char text[1024];
};

/// A socket that neither blocks nor is inherited.
File makeRendezvousSocket();

/// Whether a process of this user is at the other end.
bool sameUser(const File& socket);

bool sendWord(const File& socket, Word word, int rank, int size, std::string_view text = {},
              const SegmentFiles* passed = nullptr);
bool sendError(const File& socket, const Error& error);

enum class Got { packet, nothing, end };

/// `text` is that of the packet. Descriptors that nobody asked for are closed.
Got receivePacket(const File& socket, Packet& packet, std::string_view& text,
                  SegmentFiles* passed = nullptr);

/// Before a socket is closed: a guest's word that is still unread, as that it gives up at the same
/// time, would make the closing a reset, which takes what was sent to the guest away from it.
void hearOut(const File& socket);

}  // namespace gradlink::shm

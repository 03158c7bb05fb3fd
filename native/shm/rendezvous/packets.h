// The packets of a rendezvous of processes; one of them carries the memory's descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "shm/process_segment.h"

namespace gradlink::shm {

enum class Word : std::uint32_t {
  hello = 1,  // guest: its nonce and its proof
  welcome,    // leader: the memory
  ready,      // guest: it has the memory
  gaveUp,     // guest: its deadline has passed
  start,      // leader: all are ready
  failed,     // either: why the rendezvous fails
  challenge,  // leader, first: its nonce
  proof,      // leader: its proof
};

struct Packet {
  Word word;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t code;
  char text[1024];
};

/// A non-blocking, close-on-exec socket.
File makeRendezvousSocket();

bool sameUser(const File& socket);

bool sendWord(const File& socket, Word word, int rank, int size, std::string_view text = {},
              const SegmentFiles* passed = nullptr);
bool sendError(const File& socket, const Error& error);

enum class Got { packet, nothing, end };

/// `text` is the packet's. Unexpected descriptors are closed.
Got receivePacket(const File& socket, Packet& packet, std::string_view& text,
                  SegmentFiles* passed = nullptr);

/// Call before closing a socket: with unread data (such as a guest's gaveUp) the close would be a
/// reset and discard what was sent to the guest.
void hearOut(const File& socket);

}  // namespace gradlink::shm

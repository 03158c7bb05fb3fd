// What travels on a connection of two ranks. First the handshake: three messages of fixed lengths,
// by which both sides prove that they know the job's secret, the connecting one first. Then frames:
// a head with its seal (seal.h), the bytes that it announces, and theirs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/sha256.h"
#include "messages/tcp/address.h"

namespace gradlink::messages::tcp {

using Bytes32 = std::array<unsigned char, 32>;

inline constexpr std::array<char, 8> kMagic{'g', 'r', 'a', 'd', 'l', 'n', 'k', '2'};

/// The accepting side begins, with what tells a stranger nothing.
struct Greeting {
  std::array<char, 8> magic = kMagic;
  /// Whether this side wants all payloads sealed, 1 or 0; one that does is enough.
  std::uint64_t sealsAll = 0;
  Bytes32 nonce{};
};

/// The connecting side's answer, with its proof.
struct Hello {
  std::array<char, 8> magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  /// Whom it takes the other side for.
  std::int32_t peer = 0;
  /// Where this rank listens; 0 for rank 0, where everybody knows.
  std::uint16_t port = 0;
  /// As Greeting's.
  std::uint16_t sealsAll = 0;
  Bytes32 host{};
  Bytes32 nonce{};
};
static_assert(sizeof(Hello) == 88);

enum class Side { connecting, accepting };
/// A key that both sides of this connection have, and nobody else; no other purpose gives the same.
Bytes32 keyOf(const std::string& secret, const char* purpose, Side, const Greeting&, const Hello&);
Bytes32 newNonce();

enum class FrameKind : std::uint32_t {
  message,  // a short one, with its bytes
  offer,    // a long one: its bytes wait at the sender
  accept,   // the receiver of an offer has a place for it
  payload,  // and here they are; none where the sender gave up
  table,    // of rank 0: where all listen, once all have come
  failed,   // of rank 0: why they do not meet
  bye,      // nothing follows
};

struct FrameHead {
  FrameKind kind = FrameKind::bye;
  std::int32_t tag = 0;
  std::uint64_t context = 0;
  std::uint64_t bytes = 0;
  /// Of an offer and its acceptance: the sender's request. Of a payload: the receiver's.
  std::uint64_t id = 0;
  /// Of an acceptance: the receiver's request.
  std::uint64_t other = 0;
};
static_assert(sizeof(FrameHead) == 40);

/// A rank's line in the table.
struct Entry {
  Address address;
  Bytes32 host{};
};

/// Longer messages wait at the sender until their receiver has a place for them.
inline constexpr std::size_t kMostAtOnce = std::size_t{64} << 10;
/// Of the words in which rank 0 says why they do not meet.
inline constexpr std::size_t kMostReasonBytes = 4096;

}  // namespace gradlink::messages::tcp

// The format on a connection. First the handshake: three messages of fixed lengths, in which both
// sides prove that they know the job's secret, the connecting one first. Then frames: a head and
// its tag (seal.h), the announced bytes and their tag.
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

/// Sent first, by the accepting side; tells strangers nothing.
struct Greeting {
  std::array<char, 8> magic = kMagic;
  /// Whether this side wants all payloads sealed, 1 or 0; one of the two sides suffices.
  std::uint64_t sealsAll = 0;
  Bytes32 nonce{};
};

/// The connecting side's answer, with its proof.
struct Hello {
  std::array<char, 8> magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  /// The rank that it expects to reach.
  std::int32_t peer = 0;
  /// Where this rank listens; 0 for rank 0, whose port is known.
  std::uint16_t port = 0;
  /// As in Greeting.
  std::uint16_t sealsAll = 0;
  Bytes32 host{};
  Bytes32 nonce{};
};
static_assert(sizeof(Hello) == 88);

enum class Side { connecting, accepting };
/// A key known to both sides of this connection only; each purpose has its own.
Bytes32 keyOf(const std::string& secret, const char* purpose, Side, const Greeting&, const Hello&);
Bytes32 newNonce();

enum class FrameKind : std::uint32_t {
  message,
  offer,    // a long message: its bytes wait at the sender
  accept,   // the receiver of an offer is ready
  payload,  // the bytes of an offer; none if the sender gave up
  table,    // of rank 0: where all ranks listen, once all have come
  failed,   // of rank 0: why the rendezvous failed
  bye,      // nothing follows
};

struct FrameHead {
  FrameKind kind = FrameKind::bye;
  std::int32_t tag = 0;
  std::uint64_t context = 0;
  std::uint64_t bytes = 0;
  /// In offers and acceptances: the sender's request. In payloads: the receiver's.
  std::uint64_t id = 0;
  /// In acceptances: the receiver's request.
  std::uint64_t other = 0;
};
static_assert(sizeof(FrameHead) == 40);

struct Entry {
  Address address;
  Bytes32 host{};
};

/// Longer messages wait at the sender until their receiver is ready.
inline constexpr std::size_t kMostAtOnce = std::size_t{64} << 10;
/// The limit of rank 0's reason for a failed rendezvous.
inline constexpr std::size_t kMostReasonBytes = 4096;

}  // namespace gradlink::messages::tcp

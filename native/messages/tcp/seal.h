// Proves that a frame comes unchanged and in order from the rank at the other end: a tag follows
// its head, and one its payload. Tags are Poly1305 with one multiplier a direction; the summand is
// an HMAC of the frame's number. Nothing is encrypted.
#pragma once

#include <string>

#include "messages/tcp/frames.h"
#include "messages/tcp/poly1305.h"

namespace gradlink::messages::tcp {

using Tag = Poly1305::Block;

/// Longer payloads are sealed only on request: it costs more than a twentieth of their time.
inline constexpr std::size_t kAlwaysSealed = std::size_t{4} << 10;

/// One direction of a connection.
class Seal {
 public:
  explicit Seal(const Bytes32& key);

  struct Frame {
    Tag head;
    Poly1305 payload;
  };
  /// The next frame's; each number has its own key.
  Frame next(const FrameHead&);

 private:
  const HmacKey key_;
  const Tag multiplier_;
  std::uint64_t number_ = 0;
};

/// Both directions.
struct Seals {
  Seal out;
  Seal in;
  bool all = false;

  /// Whether a payload of this length has a tag.
  bool cover(std::size_t bytes) const { return bytes > 0 && (all || bytes <= kAlwaysSealed); }
};
Seals sealsOf(const std::string& secret, Side own, const Greeting&, const Hello&);

}  // namespace gradlink::messages::tcp

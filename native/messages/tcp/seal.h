// What shows that a frame comes from the rank at the other end of its connection, as it was sent
// and in its order: a tag behind its head, and one behind its payload. Tags are Poly1305 with one
// multiplier a direction; what is added on top, for each frame, is an HMAC of its number. What is
// sent is not encrypted.
#pragma once

#include <string>

#include "messages/tcp/frames.h"
#include "messages/tcp/poly1305.h"

namespace gradlink::messages::tcp {

using Tag = Poly1305::Block;

/// Longer payloads are sealed where a rank asks for it: it costs them more than a twentieth of
/// their time.
inline constexpr std::size_t kAlwaysSealed = std::size_t{4} << 10;

/// Of one direction of a connection.
class Seal {
 public:
  explicit Seal(const Bytes32& key);

  struct Frame {
    Tag head;
    /// For its payload.
    Poly1305 payload;
  };
  /// Of the next frame: one of its number has another.
  Frame next(const FrameHead&);

 private:
  const HmacKey key_;
  const Tag multiplier_;
  std::uint64_t number_ = 0;
};

/// Of both directions.
struct Seals {
  Seal out;
  Seal in;
  bool all = false;

  /// Whether so many bytes have a tag.
  bool cover(std::size_t bytes) const { return bytes > 0 && (all || bytes <= kAlwaysSealed); }
};
Seals sealsOf(const std::string& secret, Side own, const Greeting&, const Hello&);

}  // namespace gradlink::messages::tcp

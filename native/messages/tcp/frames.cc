#include "messages/tcp/frames.h"

#include <sys/random.h>

#include <cerrno>

#include "core/error.h"

namespace gradlink::messages::tcp {

Bytes32 keyOf(const std::string& secret, const char* purpose, Side side, const Greeting& greeting,
              const Hello& hello) {
  std::string text =
      std::string("gradlink tcp ") + purpose +
      (side == Side::connecting ? " of the connecting side " : " of the accepting side ");
  text.append(reinterpret_cast<const char*>(&greeting), sizeof(greeting));
  text.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  return hmacSha256(secret, text);
}

Bytes32 newNonce() {
  Bytes32 nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw systemError("join: no random numbers from the system", errno);
  }
  return nonce;
}

}  // namespace gradlink::messages::tcp

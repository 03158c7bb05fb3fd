#include "mpi/tcp/frames.h"

#include <sys/random.h>

#include <cerrno>

#include "core/error.h"

namespace gradlink::mpi::tcp {

Bytes32 proofOf(const std::string& secret, Side side, const Hello& hello, const Bytes32& answered) {
  std::string text =
      side == Side::connecting ? "gradlink tcp connecting " : "gradlink tcp accepting ";
  text.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  text.append(reinterpret_cast<const char*>(answered.data()), answered.size());
  return hmacSha256(secret, text);
}

Bytes32 newNonce() {
  Bytes32 nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw systemError("join: no random numbers from the system", errno);
  }
  return nonce;
}

bool sameBytes(const Bytes32& a, const Bytes32& b) {
  return sameDigest(a, {reinterpret_cast<const char*>(b.data()), b.size()});
}

}  // namespace gradlink::mpi::tcp

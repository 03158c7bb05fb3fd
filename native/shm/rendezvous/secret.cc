#include "shm/rendezvous/secret.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/error.h"

namespace gradlink::shm {
namespace {

/// Encodes the lengths, so different lists have different texts.
std::string listed(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
  }
  return text;
}

}  // namespace

RendezvousAddress::RendezvousAddress(const JoinOptions& options, int number) {
  const Digest name =
      hmacSha256(options.job, listed({"gradlink meeting", options.name, std::to_string(number)}));
  const std::string path = "gradlink/" + std::to_string(getuid()) + "/" + toHex(name);
  static_assert(sizeof(value_.sun_path) > 9 + 10 + 1 + 64);
  value_.sun_family = AF_UNIX;
  std::memcpy(value_.sun_path + 1, path.data(), path.size());
  length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
}

std::string newNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    throw systemError("join: no random numbers from the system", errno);
  return nonce;
}

Digest proofOf(const JoinOptions& options, Side side, std::string_view leaderNonce,
               std::string_view guestNonce, int rank, int size) {
  return hmacSha256(
      options.job,
      listed({side == Side::leader ? "gradlink leader" : "gradlink guest", options.name,
              leaderNonce, guestNonce, std::to_string(rank), std::to_string(size)}));
}

}  // namespace gradlink::shm

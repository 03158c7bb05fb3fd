#include "messages/tcp/seal.h"

#include <algorithm>
#include <string_view>

namespace gradlink::messages::tcp {
namespace {

Tag firstHalf(const Digest& digest) {
  Tag half;
  std::copy_n(digest.begin(), half.size(), half.begin());
  return half;
}

}  // namespace

Seal::Seal(const Bytes32& key)
    : key_(digestText(key)), multiplier_(firstHalf(key_.of("multiplier"))) {}

Seal::Frame Seal::next(const FrameHead& head) {
  const std::uint64_t number = number_++;
  const Digest summands = key_.of({reinterpret_cast<const char*>(&number), sizeof(number)});
  Tag second;
  std::copy_n(summands.begin() + second.size(), second.size(), second.begin());
  return {Poly1305(multiplier_, firstHalf(summands)).update(&head, sizeof(head)).finish(),
          Poly1305(multiplier_, second)};
}

Seals sealsOf(const std::string& secret, Side own, const Greeting& greeting, const Hello& hello) {
  const Side other = own == Side::connecting ? Side::accepting : Side::connecting;
  return {Seal(keyOf(secret, "frames", own, greeting, hello)),
          Seal(keyOf(secret, "frames", other, greeting, hello)),
          greeting.sealsAll != 0 || hello.sealsAll != 0};
}

}  // namespace gradlink::messages::tcp

#include "core/envelope.h"
#include "core/kernels/copy_bytes.h"

#include <cstring>
#include <utility>

namespace gradlink {

Unexpected sentToSelf(int rank, const Envelope& envelope, const void* data) {
  const std::size_t bytes = envelope.bytes();
  auto copy = std::make_unique<std::byte[]>(bytes);
  copyBytes(copy.get(), data, bytes);
  return {rank, envelope, std::move(copy)};
}

std::string misfitText(int source, const Envelope& envelope, int receiver, const Wanted& wanted) {
  const auto text = [](std::uint64_t count, DType dtype) {
    return std::to_string(count) + " elements of " + nameOf(dtype);
  };
  return "rank " + std::to_string(source) + " sent " + text(envelope.count, envelope.dtype) +
         " with tag " + std::to_string(envelope.tag) + " to rank " + std::to_string(receiver) +
         ", which receives at most " + text(wanted.count, wanted.dtype);
}

}  // namespace gradlink

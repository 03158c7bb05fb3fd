#include <cstring>
#include <string>

#include "core/kernels/copy_bytes.h"
#include "kvstore/server/context.h"

namespace gradlink::dist {

void Replies::value(int worker, const Header& header, const void* data, std::size_t bytes,
                    std::uint64_t ticket) {
  wire_.send(worker, std::as_bytes(std::span(&header, 1)), data, bytes, ticket);
}

void Replies::answer(int worker, MessageType type, std::uint64_t request, const void* data,
                     std::size_t bytes) {
  Header header{};
  header.type = type;
  header.count = bytes;
  header.request = request;
  send(worker, header, data, bytes);
}

void Replies::failed(int worker, std::uint64_t request, const Error& error, std::uint32_t shard) {
  Header header{};
  header.type = MessageType::failed;
  header.shard = shard;
  header.code = static_cast<std::int32_t>(error.code);
  header.blame = error.rank;
  header.request = request;
  const std::string text = error.what();
  send(worker, header, text.data(), text.size());
}

void Replies::send(int worker, const Header& header, const void* data, std::size_t bytes) {
  const auto head = std::as_bytes(std::span(&header, 1));
  if (bytes == 0) {
    wire_.send(worker, head, nullptr, 0, 0);
    return;
  }
  void* memory = wire_.allocate(bytes);
  copyBytes(memory, data, bytes);
  wire_.send(worker, head, memory, bytes, kAnswer | reinterpret_cast<std::uintptr_t>(memory));
}

bool Replies::took(std::uint64_t ticket) {
  if ((ticket & kAnswer) == 0) return false;
  wire_.deallocate(reinterpret_cast<void*>(static_cast<std::uintptr_t>(ticket & ~kAnswer)));
  return true;
}

}  // namespace gradlink::dist

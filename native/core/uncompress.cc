#include "core/uncompress.h"

#include <dlfcn.h>

#include <algorithm>

namespace gradlink {
namespace {

using Uncompress = int(unsigned char* out, unsigned long* outBytes, const unsigned char* data,
                       unsigned long bytes);

/// Node contains or links zlib and exports its functions: one function needs no header.
Uncompress* zlib() {
  static auto* const found = [] {
    void* function = dlsym(RTLD_DEFAULT, "uncompress");
    if (function == nullptr) {
      // Never closed.
      void* const library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) function = dlsym(library, "uncompress");
    }
    return reinterpret_cast<Uncompress*>(function);
  }();
  return found;
}

}  // namespace

std::optional<std::vector<char>> uncompress(std::span<const char> data, std::size_t most) {
  constexpr int kOk = 0;
  constexpr int kNoRoom = -5;
  if (zlib() == nullptr) return std::nullopt;
  std::vector<char> out;
  // The uncompressed size is not known in advance.
  for (std::size_t room = std::min(8 * data.size() + 64, most);; room = std::min(2 * room, most)) {
    out.resize(room);
    unsigned long bytes = room;
    const int status = zlib()(reinterpret_cast<unsigned char*>(out.data()), &bytes,
                              reinterpret_cast<const unsigned char*>(data.data()), data.size());
    if (status == kOk) {
      out.resize(bytes);
      return out;
    }
    if (status != kNoRoom || room == most) return std::nullopt;
  }
}

}  // namespace gradlink

// What point-to-point messages carry before their data, and which receive takes which message: the
// same in every engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/communicator.h"
#include "core/kernels/dtype.h"

namespace gradlink {

struct Envelope {
  std::uint64_t count;
  std::int32_t tag;
  DType dtype;
  /// Its data waits until a receive wants it.
  bool isLong;
  std::uint16_t reserved;

  std::size_t bytes() const { return count * sizeOf(dtype); }
};
static_assert(sizeof(Envelope) == 16);

/// A message that came before it was asked for; `data` without its envelope.
struct Unexpected {
  int source;
  Envelope envelope;
  std::unique_ptr<std::byte[]> data;
};

/// What a receive asks for.
struct Wanted {
  void* data;
  std::size_t count;
  DType dtype;
  /// kAnySource takes the first that comes.
  int source;
  int tag;

  bool matches(int from, const Envelope& envelope) const {
    return envelope.tag == tag && (source == kAnySource || source == from);
  }
  /// Whether a message that matches may be taken.
  bool fits(const Envelope& envelope) const {
    return envelope.dtype == dtype && envelope.count <= count;
  }
};

/// A message to itself, which waits for its receive.
Unexpected sentToSelf(int rank, const Envelope& envelope, const void* data);

/// Says of a message that matches and does not fit who sent what, and who receives what.
std::string misfitText(int source, const Envelope& envelope, int receiver, const Wanted& wanted);

}  // namespace gradlink

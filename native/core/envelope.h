// The header of point-to-point messages and the matching of receives: the same in every engine.
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
  /// The data follows once a receive matches.
  bool isLong;
  std::uint16_t reserved;

  std::size_t bytes() const { return count * sizeOf(dtype); }
};
static_assert(sizeof(Envelope) == 16);

/// A message without a matching receive yet; `data` excludes the envelope.
struct Unexpected {
  int source;
  Envelope envelope;
  std::unique_ptr<std::byte[]> data;
};

struct Wanted {
  void* data;
  std::size_t count;
  DType dtype;
  int source;
  int tag;

  bool matches(int from, const Envelope& envelope) const {
    return envelope.tag == tag && (source == kAnySource || source == from);
  }
  /// Whether a matching message has an acceptable type and length.
  bool fits(const Envelope& envelope) const {
    return envelope.dtype == dtype && envelope.count <= count;
  }
};

/// A message to the own rank, which waits for its receive.
Unexpected sentToSelf(int rank, const Envelope& envelope, const void* data);

/// The error text of a matching message that does not fit.
std::string misfitText(int source, const Envelope& envelope, int receiver, const Wanted& wanted);

}  // namespace gradlink

// The start of every collective: each rank learns all calls, and all data if it is short. Messages
// double in reach from step to step (Bruck's all-gather), so log2(size) of them suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/call.h"
#include "messages/rank_link.h"

namespace gradlink::messages {

class Agreement {
 public:
  explicit Agreement(Link& link);

  std::size_t mostBytes() const { return mostBytes_; }
  /// All ranks announce; throws a mismatch on all if calls differ. `payload`: up to mostBytes().
  void meet(const Shape& shape, std::span<const std::byte> payload, Wait& wait);
  /// A rank's payload of the last call, valid until the next one.
  std::span<const std::byte> payload(int rank) const;

  /// All-gathers bytes of different lengths, up to `most`, after a rendezvous.
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> own, std::size_t most,
                                               Wait& wait);

 private:
  struct Announcement {
    ShapeOnWire shape;
    std::int32_t rank;
    std::uint32_t bytes;
  };
  static_assert(sizeof(Announcement) == 24);

  const Announcement& at(int rank) const {
    return *reinterpret_cast<const Announcement*>(gathered_.get() +
                                                  offset_[static_cast<std::size_t>(rank)]);
  }
  void announce(const ShapeOnWire& shape, std::span<const std::byte> payload, Wait& wait);
  /// Two ranks: the case with the most visible latency.
  void exchangePair(std::size_t own, Wait& wait);
  void exchangeAll(std::size_t own, Wait& wait);
  /// Sets the offsets of consecutive announcements.
  void index(std::size_t from, std::size_t to);

  Link& link_;
  std::size_t mostBytes_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> gathered_;
  /// The beginning and the end of each rank's announcement.
  std::vector<std::size_t> offset_;
  std::vector<std::size_t> ends_;
};

}  // namespace gradlink::messages

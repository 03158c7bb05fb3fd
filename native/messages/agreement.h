// What starts every collective: each rank learns what all others call, and their data where it is
// short. Messages double in reach from step to step (Bruck's all-gather), so that all have met
// after log2(size) of them.
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

  /// The most that a rank can bring to a call.
  std::size_t mostBytes() const { return mostBytes_; }
  /// All ranks announce; throws mismatch on all of them where they announce different calls.
  /// `payload` is at most mostBytes().
  void meet(const Shape& shape, std::span<const std::byte> payload, Wait& wait);
  /// What a rank brought to the last call: until the next one.
  std::span<const std::byte> payload(int rank) const;

  /// Everybody's bytes of different lengths, `most` the largest of them, after a rendezvous.
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
  /// Brings everybody's announcement here.
  void announce(const ShapeOnWire& shape, std::span<const std::byte> payload, Wait& wait);
  /// Two ranks: the case whose latency shows most.
  void exchangePair(std::size_t own, Wait& wait);
  void exchangeAll(std::size_t own, Wait& wait);
  /// Where the announcements are, one after the other.
  void index(std::size_t from, std::size_t to);

  Link& link_;
  std::size_t mostBytes_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> gathered_;
  /// Where each rank's announcement begins, and the ends of the first so many of them.
  std::vector<std::size_t> offset_;
  std::vector<std::size_t> ends_;
};

}  // namespace gradlink::messages

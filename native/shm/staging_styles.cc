#include "shm/staging_styles.h"

#include <bit>

namespace gradlink::shm {
namespace {

// Sizes within a factor of two share a key, which is never 0.
std::uint32_t keyOf(const Shape& shape, std::size_t bytes) {
  const auto kind = static_cast<std::uint32_t>(shape.kind);
  const auto dtype = static_cast<std::uint32_t>(shape.dtype);
  const auto op = static_cast<std::uint32_t>(shape.op);
  const auto size = static_cast<std::uint32_t>(std::bit_width(bytes));
  return ((kind << 8 | dtype << 4 | op) << 8 | size) + 1;
}

}  // namespace

StagingWork StagingStyles::plan(const Shape& shape, std::size_t bytes, int ways) const {
  const std::uint32_t key = keyOf(shape, bytes);
  const Entry& entry = entries_[placeOf(key)];
  return StagingWork(entry.key == key ? entry.choice : MeasuredChoice(ways));
}

void StagingStyles::met(const Shape& shape, std::size_t bytes, int ways, std::uint32_t call,
                        float probed) {
  if (reported_ != 0) {
    Entry& entry = entries_[placeOf(reported_)];
    for (const bool tried : {false, true}) {
      float seconds = 0;
      for (int r = 0; r < session_.size(); ++r) seconds += session_.reported(r, call)[tried];
      if (entry.key == reported_ && seconds > 0 && bytes_[tried] > 0)
        entry.choice.record(ways_[tried], seconds / bytes_[tried]);
    }
    reported_ = 0;
  }
  const std::uint32_t key = keyOf(shape, bytes);
  Entry& entry = entries_[placeOf(key)];
  if (entry.key != key) entry = {key, MeasuredChoice(ways)};
  if (entry.choice.measured()) {
    reported_ = key;
    const float tried = entry.choice.probing() ? probed : 0;
    ways_[false] = entry.choice.chosen();
    ways_[true] = entry.choice.way();
    bytes_[false] = (1 - tried) * static_cast<float>(bytes);
    bytes_[true] = tried * static_cast<float>(bytes);
  }
  entry.choice.advance(probed);
}

void StagingStyles::spent(const StagingWork& work) {
  if (work.measured()) session_.report(work.seconds(false), work.seconds(true));
}

}  // namespace gradlink::shm

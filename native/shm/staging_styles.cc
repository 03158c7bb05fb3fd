#include "shm/staging_styles.h"

#include <bit>

namespace gradlink::shm {
namespace {

// Sizes within a factor of two are alike. Never 0.
std::uint32_t keyOf(const Shape& shape, std::size_t bytes) {
  const auto kind = static_cast<std::uint32_t>(shape.kind);
  const auto dtype = static_cast<std::uint32_t>(shape.dtype);
  const auto op = static_cast<std::uint32_t>(shape.op);
  const auto size = static_cast<std::uint32_t>(std::bit_width(bytes));
  return ((kind << 8 | dtype << 4 | op) << 8 | size) + 1;
}

}  // namespace

StagingWork StagingStyles::plan(const Shape& shape, std::size_t bytes) const {
  const std::uint32_t key = keyOf(shape, bytes);
  const Entry& entry = entries_[placeOf(key)];
  return StagingWork(entry.key == key ? entry.style : StoreStyle());
}

void StagingStyles::met(const Shape& shape, std::size_t bytes, std::uint32_t call,
                        std::uint32_t chunks) {
  if (reported_ != 0) {
    Entry& entry = entries_[placeOf(reported_)];
    for (const bool streaming : {false, true}) {
      float seconds = 0;
      for (int r = 0; r < session_.size(); ++r) seconds += session_.reported(r, call)[streaming];
      if (entry.key == reported_ && seconds > 0 && bytes_[streaming] > 0)
        entry.style.record(streaming, seconds / bytes_[streaming]);
    }
    reported_ = 0;
  }
  const std::uint32_t key = keyOf(shape, bytes);
  Entry& entry = entries_[placeOf(key)];
  if (entry.key != key) entry = {key, {}};
  const float probed = std::min(chunks, StagingWork::kProbedChunks) / static_cast<float>(chunks);
  if (entry.style.measured()) {
    reported_ = key;
    const float tried = entry.style.probing() ? probed : 1;
    const bool streaming = entry.style.streaming();
    bytes_[streaming] = tried * static_cast<float>(bytes);
    bytes_[!streaming] = (1 - tried) * static_cast<float>(bytes);
  }
  entry.style.advance(probed);
}

void StagingStyles::spent(const StagingWork& work) {
  if (work.measured()) session_.report(work.seconds(false), work.seconds(true));
}

}  // namespace gradlink::shm

#include "shm/staging_styles.h"

namespace gradlink::shm {

StagingWork StagingStyles::plan(const Shape& shape, std::size_t bytes, int ways) const {
  const auto* known = choices_.find(similarCallsKey(shape, bytes, session_.size()));
  return StagingWork(known != nullptr ? *known : MeasuredChoice(ways));
}

void StagingStyles::met(const Shape& shape, std::size_t bytes, int ways, std::uint32_t call,
                        float probed) {
  if (reported_ != 0) {
    MeasuredChoice& choice = choices_.at(reported_);
    for (const bool tried : {false, true}) {
      float seconds = 0;
      for (int r = 0; r < session_.size(); ++r) seconds += session_.reported(r, call)[tried];
      if (seconds > 0 && bytes_[tried] > 0) choice.record(ways_[tried], seconds / bytes_[tried]);
    }
    reported_ = 0;
  }
  const std::uint32_t key = similarCallsKey(shape, bytes, session_.size());
  MeasuredChoice& choice = choices_.at(key, MeasuredChoice(ways));
  if (choice.measured()) {
    reported_ = key;
    const float tried = choice.probing() ? probed : 0;
    ways_[false] = choice.chosen();
    ways_[true] = choice.way();
    bytes_[false] = (1 - tried) * static_cast<float>(bytes);
    bytes_[true] = tried * static_cast<float>(bytes);
  }
  choice.advance(probed);
}

void StagingStyles::spent(const StagingWork& work) {
  if (work.measured()) session_.report(work.seconds(false), work.seconds(true));
}

}  // namespace gradlink::shm

#include "measure/gpu/stream_hold.h"

#include <atomic>

#include "cuda/kernels.h"

namespace gradlink::measure {

void StreamHold::begin() {
  std::atomic_ref(*static_cast<std::uint32_t*>(flag_.data())).store(0);
  began_ = std::chrono::steady_clock::now();
}

void StreamHold::hold(cuda::Stream& stream) const {
  const auto* flag = static_cast<const std::uint32_t*>(flag_.data());
  cuda::Kernels::of(stream.device()).spin(stream, flag, kLongestSeconds);
}

bool StreamHold::end() {
  std::atomic_ref(*static_cast<std::uint32_t*>(flag_.data())).store(1);
  const std::chrono::duration<double> held = std::chrono::steady_clock::now() - began_;
  return held.count() < kLongestSeconds;
}

}  // namespace gradlink::measure

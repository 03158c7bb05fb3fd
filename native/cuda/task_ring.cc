#include "cuda/task_ring.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace gradlink::cuda {
namespace {

/// Thousands of single tasks, or a dozen rounds of a store with hundreds of arrays: nobody waits
/// for room who does not queue without end.
constexpr std::size_t kFirstBytes = 1 << 20;
/// A list may take this share of the ring, so that one can be written while others are under way.
constexpr std::size_t kShare = 4;
constexpr std::size_t kListAlignment = 16;

}  // namespace

TaskRing::TaskRing(Stream& stream) : impl_(std::make_unique<Impl>(stream)) {}

TaskRing::~TaskRing() {
  try {
    impl_->stream.synchronize();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // What failed is reported to whoever waits for the work; here it only must not be running.
  }
}

TaskRing::Impl::Impl(Stream& stream)
    : stream(stream), host_(kFirstBytes), device_(stream.device(), kFirstBytes) {}

TaskList TaskRing::Impl::reserve(std::size_t bytes) {
  bytes = (bytes + kListAlignment - 1) / kListAlignment * kListAlignment;
  if (bytes > host_.bytes() / kShare) grow(bytes);
  if (next_ + bytes > host_.bytes()) next_ = 0;
  const std::size_t end = next_ + bytes;
  const auto inTheWay = [this, end](const Sent& sent) {
    return sent.begin < end && next_ < sent.end;
  };
  while (std::any_of(sent_.begin(), sent_.end(), inTheWay)) {
    sent_.front().copied->synchronize();
    forgetOldest();
  }
  while (!sent_.empty() && sent_.front().copied->done()) forgetOldest();
  const TaskList list{static_cast<std::byte*>(host_.data()) + next_,
                      static_cast<std::byte*>(device_.data()) + next_, bytes};
  next_ = end;
  return list;
}

void TaskRing::Impl::send(const TaskList& list) {
  stream.copy(list.device, list.host, list.bytes);
  std::unique_ptr<Event> copied;
  if (spareEvents_.empty()) {
    copied = std::make_unique<Event>(stream.device(), false);
  } else {
    copied = std::move(spareEvents_.back());
    spareEvents_.pop_back();
  }
  copied->record(stream);
  const auto begin =
      static_cast<std::size_t>(list.host - static_cast<const std::byte*>(host_.data()));
  sent_.push_back({begin, begin + list.bytes, std::move(copied)});
}

void TaskRing::Impl::forgetOldest() {
  spareEvents_.push_back(std::move(sent_.front().copied));
  sent_.pop_front();
}

void TaskRing::Impl::grow(std::size_t bytes) {
  stream.synchronize();
  while (!sent_.empty()) forgetOldest();
  const std::size_t size = std::bit_ceil(bytes * kShare);
  host_ = PinnedMemory(size);
  device_ = DeviceMemory(stream.device(), size);
  next_ = 0;
}

void* TaskRing::Impl::scratch(std::size_t bytes) {
  if (bytes > scratch_.bytes()) {
    stream.synchronize();
    scratch_ = DeviceMemory(stream.device(), std::bit_ceil(bytes));
  }
  return scratch_.data();
}

}  // namespace gradlink::cuda

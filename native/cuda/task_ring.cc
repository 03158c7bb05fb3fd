#include "cuda/task_ring.h"

#include <bit>

#include "core/error.h"

namespace gradlink::cuda {
namespace {

/// Enough for thousands of single tasks or a dozen rounds of a store, so waits for room are rare.
constexpr std::size_t kFirstBytes = 1 << 20;
/// One is written while the others' lists are in use.
constexpr std::size_t kParts = 4;
constexpr std::size_t kListAlignment = 16;

}  // namespace

TaskRing::TaskRing(Stream& stream) : impl_(std::make_unique<Impl>(stream)) {}

TaskRing::~TaskRing() {
  const SameContext same;
  try {
    impl_->synchronize();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // The error is reported to whoever waits for the work.
  }
}

TaskRing::Impl::Impl(Stream& stream)
    : stream(stream),
      lists_(stream.device()),
      sent_(stream.device(), false),
      host_(kFirstBytes),
      device_(stream.device(), kFirstBytes) {
  for (std::size_t i = 0; i < kParts; ++i)
    parts_.push_back(std::make_unique<Part>(stream.device()));
}

std::size_t TaskRing::Impl::partBytes() const { return host_.bytes() / kParts; }

TaskList TaskRing::Impl::reserve(std::size_t bytes) {
  bytes = (bytes + kListAlignment - 1) / kListAlignment * kListAlignment;
  if (bytes > partBytes()) {
    grow(bytes);
  } else if (next_ + bytes > partBytes()) {
    nextPart();
  }
  const std::size_t at = part_ * partBytes() + next_;
  next_ += bytes;
  return {static_cast<std::byte*>(host_.data()) + at, static_cast<std::byte*>(device_.data()) + at,
          bytes};
}

void TaskRing::Impl::send(const TaskList& list) {
  parts_[part_]->used = true;
  lists_.copy(list.device, list.host, list.bytes);
  sent_.record(lists_);
  stream.wait(sent_);
}

void TaskRing::Impl::nextPart() {
  if (parts_[part_]->used) parts_[part_]->passed.record(stream);
  part_ = (part_ + 1) % kParts;
  next_ = 0;
  if (parts_[part_]->used) parts_[part_]->passed.synchronize();
  parts_[part_]->used = false;
}

void TaskRing::Impl::synchronize() {
  lists_.synchronize();
  stream.synchronize();
}

void TaskRing::Impl::grow(std::size_t bytes) {
  synchronize();
  const std::size_t size = std::bit_ceil(bytes * kParts);
  host_ = PinnedMemory(size);
  device_ = DeviceMemory(stream.device(), size);
  part_ = next_ = 0;
}

void* TaskRing::Impl::scratch(std::size_t bytes) {
  if (bytes > scratch_.bytes()) {
    stream.synchronize();
    scratch_ = DeviceMemory(stream.device(), std::bit_ceil(bytes));
  }
  return scratch_.data();
}

}  // namespace gradlink::cuda

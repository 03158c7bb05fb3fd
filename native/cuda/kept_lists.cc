#include "core/error.h"
#include "cuda/task_ring.h"

namespace gradlink::cuda {

void KeptLists::begin(bool launches) {
  launches_ = launches;
  list_ = scratch_ = 0;
}

TaskList KeptLists::reserve(std::size_t bytes) {
  if (list_ == lists_.size()) {
    lists_.push_back({DeviceMemory(device_, bytes), std::vector<std::byte>(bytes), {}});
  }
  List& list = lists_[list_];
  if (list.there.bytes() != bytes) {
    throw Error(ErrorCode::system, "a list of a graph has another size than when it was captured");
  }
  return {list.now.data(), static_cast<std::byte*>(list.there.data()), bytes};
}

void KeptLists::send(bool written) { lists_[list_++].written = written; }

void* KeptLists::scratch(std::size_t bytes) {
  if (scratch_ == scratches_.size()) scratches_.emplace_back(device_, bytes);
  return scratches_[scratch_++].data();
}

}  // namespace gradlink::cuda

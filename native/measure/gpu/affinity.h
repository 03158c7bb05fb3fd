// Where a thread runs while it allocates host memory for a GPU: memory comes from the node of the
// thread that first touches it.
#pragma once

#include <sched.h>

#include <optional>
#include <string>

namespace gradlink::measure {

/// Keeps the calling thread on the cores of a NUMA node, among those it may use, until destroyed;
/// then it may run where it could before. Does nothing without a node, or where the system does not
/// tell its cores, or where the thread may use none of them.
class OnNode {
 public:
  explicit OnNode(std::optional<int> node);
  ~OnNode();
  OnNode(const OnNode&) = delete;
  OnNode& operator=(const OnNode&) = delete;

  bool moved() const { return moved_; }

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

/// The cores of a list as Linux writes it: "0-3,8".
cpu_set_t coresOf(const std::string& list);

}  // namespace gradlink::measure

// Where a thread runs while it allocates a GPU's host memory: first touch decides the NUMA node.
#pragma once

#include <sched.h>

#include <optional>
#include <string>

namespace gradlink::measure {

/// Binds the calling thread to the allowed cores of a NUMA node until destroyed. Does nothing
/// without a node, if its cores are unknown, or if the thread may use none of them.
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

/// Parses a list of cores as Linux writes it: "0-3,8".
cpu_set_t coresOf(const std::string& list);

}  // namespace gradlink::measure

#include "measure/gpu/affinity.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gradlink::measure {

cpu_set_t coresOf(const std::string& list) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::istringstream pieces(list);
  std::string piece;
  while (std::getline(pieces, piece, ',')) {
    std::istringstream range(piece);
    int first = 0;
    if (!(range >> first)) continue;
    int last = first;
    if (range.peek() == '-') {
      range.get();
      if (!(range >> last)) continue;
    }
    for (int core = std::max(first, 0); core <= std::min(last, CPU_SETSIZE - 1); ++core) {
      CPU_SET(core, &cores);
    }
  }
  return cores;
}

OnNode::OnNode(std::optional<int> node) {
  CPU_ZERO(&before_);
  if (!node || *node < 0) return;
  std::ifstream file("/sys/devices/system/node/node" + std::to_string(*node) + "/cpulist");
  std::string list;
  if (!std::getline(file, list)) return;
  if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  const cpu_set_t there = coresOf(list);
  cpu_set_t wanted;
  CPU_AND(&wanted, &there, &before_);
  if (CPU_COUNT(&wanted) == 0) return;
  moved_ = sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
}

OnNode::~OnNode() {
  if (moved_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace gradlink::measure

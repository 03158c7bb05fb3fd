// The library's numbers of operations, and those made for scaled sums, for the time of one launch.
#pragma once

#include <span>
#include <vector>

#include "nccl/comms.h"
#include "nccl/nccl.h"

namespace gradlink::nccl {

class ScaledOps {
 public:
  /// Makes what the launches' scales ask for; they have been checked.
  ScaledOps(const Library&, const Comms&, std::span<const Launch>);
  ~ScaledOps();
  ScaledOps(const ScaledOps&) = delete;
  ScaledOps& operator=(const ScaledOps&) = delete;

  int op(std::size_t launch, std::size_t member) const {
    const Row& row = rows_[launch];
    return row.made.empty() ? row.plain : row.made[member];
  }

 private:
  struct Row {
    int plain;
    std::vector<int> made;
  };
  void destroy();

  const Library& library_;
  const Comms& comms_;
  std::vector<Row> rows_;
};

}  // namespace gradlink::nccl

// The library's op numbers, including those made for scaled sums, for one launch.
#pragma once

#include <span>
#include <vector>

#include "nccl/comms.h"
#include "nccl/nccl.h"

namespace gradlink::nccl {

class ScaledOps {
 public:
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

# NCCL, loaded at run time: communicators whose ranks are GPUs.
add_library(gradlink_nccl STATIC)
unite(gradlink_nccl ranks
  comms.cc
  library.cc
  queue.cc
  ranks.cc
  ranks_counted.cc
  ranks_job.cc
  ranks_measure.cc
  ranks_neighbors.cc
  scaled_ops.cc)
target_link_libraries(gradlink_nccl PUBLIC gradlink_cuda)
precompile_standard_headers(gradlink_nccl)

# NCCL, loaded at run time: communicators whose ranks are GPUs.
add_library(gradlink_nccl STATIC)
unite(gradlink_nccl communicator
  comms.cc
  library.cc
  queue.cc
  scaled_ops.cc)
unite(gradlink_nccl ranks
  ranks.cc
  ranks_job.cc
  ranks_measure.cc
  ranks_neighbors.cc)
target_link_libraries(gradlink_nccl PUBLIC gradlink_cuda)
precompile_standard_headers(gradlink_nccl)

# NCCL, loaded at run time: communicators whose ranks are GPUs.
add_library(gradlink_nccl STATIC)
unite(gradlink_nccl ranks
  comms.cc
  join.cc
  library.cc
  nccl_rendezvous.cc
  processes.cc
  queue.cc
  ranks.cc
  ranks_job.cc
  ranks_measure.cc
  ranks_messages.cc
  ranks_neighbors.cc
  ranks_pairs.cc
  ranks_registered.cc
  ranks_split.cc
  registered.cc
  scaled_ops.cc)
target_link_libraries(gradlink_nccl PUBLIC gradlink_cuda)
precompile_standard_headers(gradlink_nccl)

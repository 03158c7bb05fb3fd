# NCCL, loaded at run time: communicators whose ranks are GPUs.
add_library(gradlink_nccl STATIC
  ${CMAKE_CURRENT_LIST_DIR}/comms.cc
  ${CMAKE_CURRENT_LIST_DIR}/library.cc
  ${CMAKE_CURRENT_LIST_DIR}/queue.cc
  ${CMAKE_CURRENT_LIST_DIR}/ranks.cc
  ${CMAKE_CURRENT_LIST_DIR}/ranks_job.cc
  ${CMAKE_CURRENT_LIST_DIR}/ranks_measure.cc
  ${CMAKE_CURRENT_LIST_DIR}/ranks_neighbors.cc
  ${CMAKE_CURRENT_LIST_DIR}/scaled_ops.cc)
target_link_libraries(gradlink_nccl PUBLIC gradlink_cuda)

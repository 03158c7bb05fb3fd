# Timed loops and exact test patterns.
add_library(gradlink_measure STATIC
  ${CMAKE_CURRENT_LIST_DIR}/collective_loop.cc
  ${CMAKE_CURRENT_LIST_DIR}/collective_record.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_affinity.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_buffers.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_collective.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_collective_data.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_copies.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_graph.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_kernel_times.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_latency.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_peers.cc
  ${CMAKE_CURRENT_LIST_DIR}/memory_bandwidth.cc
  ${CMAKE_CURRENT_LIST_DIR}/pattern.cc)
target_link_libraries(gradlink_measure PUBLIC gradlink_core PRIVATE gradlink_cuda gradlink_nccl)

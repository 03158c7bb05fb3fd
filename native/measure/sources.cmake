# Timed loops and exact test patterns.
add_library(gradlink_measure STATIC)
unite(gradlink_measure loops
  collective_loop.cc
  collective_record.cc
  gpu_affinity.cc
  gpu_buffers.cc
  gpu_collective.cc
  gpu_collective_data.cc
  gpu_copies.cc
  gpu_graph.cc
  gpu_kernel_times.cc
  gpu_latency.cc
  gpu_peers.cc
  memory_bandwidth.cc
  pattern.cc)
target_link_libraries(gradlink_measure PUBLIC gradlink_core PRIVATE gradlink_cuda gradlink_nccl)
precompile_standard_headers(gradlink_measure)

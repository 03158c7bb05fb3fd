# Timed loops and exact test patterns.
add_library(gradlink_measure STATIC)
unite(gradlink_measure loops
  between_cores.cc
  collective_loop.cc
  collective_record.cc
  core_rates.cc
  gpu/affinity.cc
  gpu/buffers.cc
  gpu/collective.cc
  gpu/collective_data.cc
  gpu/copies.cc
  gpu/kernel_times.cc
  gpu/latency.cc
  gpu/peers.cc
  gpu/stream_hold.cc
  memory_bandwidth.cc
  message_calls.cc
  message_loop.cc
  pattern.cc
  store_check.cc
  uniform_numbers.cc)
target_link_libraries(gradlink_measure PUBLIC gradlink_core PRIVATE gradlink_cuda gradlink_nccl)
precompile_standard_headers(gradlink_measure)

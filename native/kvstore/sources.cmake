# The key-value store engine, its optimizers and gradient compression.
add_library(gradlink_kvstore STATIC)
unite(gradlink_kvstore worker
  allreduce_agreement.cc
  allreduce_engine.cc
  allreduce_store.cc
  allreduce_sums.cc
  dist_buffers.cc
  dist_engine.cc
  dist_link.cc
  dist_placement.cc
  dist_states.cc
  dist_store.cc
  dist_terms.cc
  dist_transfer.cc
  dist_transfers.cc)
unite(gradlink_kvstore gpu
  gpu_collectives.cc
  gpu_device_site.cc
  gpu_dist_site.cc
  gpu_dist_store.cc
  gpu_engine.cc
  gpu_host_site.cc
  gpu_item.cc
  gpu_marks.cc
  gpu_places.cc
  gpu_round.cc
  gpu_step.cc
  gpu_store.cc)
unite(gradlink_kvstore local
  aligned_buffer.cc
  compression.cc
  key_lane.cc
  key_work.cc
  local_store.cc
  lr_scheduler.cc
  optimizer.cc
  optimizer_math.cc
  scheduler.cc
  simd/kernels.cc
  state_file.cc
  store_checks.cc
  update_run.cc
  whole_file.cc)
unite(gradlink_kvstore server
  server_control.cc
  server_loop.cc
  server_merge.cc
  server_pipeline.cc
  server_replies.cc
  server_shard.cc)
target_link_libraries(gradlink_kvstore PUBLIC gradlink_core PRIVATE gradlink_nccl gradlink_cuda)
precompile_standard_headers(gradlink_kvstore)

# The loops of kvstore/simd are compiled once a SIMD level. errno and floating-point traps are nobody's business there,
# and would keep roots and conditions from being vectorised; neither flag changes a result.
set(GRADLINK_LOOP_OPTIONS -fno-math-errno -fno-trapping-math)
alone(gradlink_kvstore "${GRADLINK_LOOP_OPTIONS}" simd/kernels_generic.cc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  alone(gradlink_kvstore "${GRADLINK_LOOP_OPTIONS};-mavx2" simd/kernels_avx2.cc)
  alone(gradlink_kvstore
    "${GRADLINK_LOOP_OPTIONS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512"
    simd/kernels_avx512.cc)
endif()

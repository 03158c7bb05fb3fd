# The key-value store engine, its optimizers and gradient compression.
add_library(gradlink_kvstore STATIC)
unite(gradlink_kvstore worker
  allreduce/key_agreement.cc
  allreduce/allreduce_engine.cc
  allreduce/rows.cc
  allreduce/shards.cc
  allreduce/steps.cc
  allreduce/allreduce_store.cc
  allreduce/sums.cc
  worker/buffers.cc
  worker/dist_engine.cc
  worker/server_link.cc
  worker/placement.cc
  worker/states.cc
  worker/dist_store.cc
  worker/terms.cc
  worker/transfer.cc
  worker/transfers.cc)
unite(gradlink_kvstore gpu
  gpu/collectives.cc
  gpu/device_site.cc
  gpu/gpu_engine.cc
  gpu/host_site.cc
  gpu/key.cc
  gpu/marks.cc
  gpu/nccl_sums.cc
  gpu/packs.cc
  gpu/places.cc
  gpu/requests.cc
  gpu/round.cc
  gpu/shards.cc
  gpu/staging.cc
  gpu/step.cc
  gpu/gpu_store.cc
  staged/gpu_dist_site.cc
  staged/gpu_dist_store.cc)
unite(gradlink_kvstore local
  base/compression.cc
  base/rows.cc
  protocol/piece_rows.cc
  base/whole_file.cc
  key.cc
  local/key_work.cc
  local/scheduler.cc
  local/local_store.cc
  optimizer/lr_scheduler.cc
  optimizer/math.cc
  optimizer/optimizer.cc
  optimizer/optimizer_options.cc
  optimizer/simd/kernels.cc
  optimizer/noise.cc
  optimizer/state_file.cc
  optimizer/state_parts.cc
  optimizer/update_run.cc
  store.cc
  store_checks.cc)
unite(gradlink_kvstore server
  server/control.cc
  server/loop.cc
  server/merge.cc
  server/notes.cc
  server/pipeline.cc
  server/replies.cc
  server/shard.cc
  server/trace.cc)
target_link_libraries(gradlink_kvstore PUBLIC gradlink_core PRIVATE gradlink_nccl gradlink_cuda)
precompile_standard_headers(gradlink_kvstore)

# The loops of kvstore/optimizer/simd are compiled once a SIMD level. errno and floating-point traps are nobody's business
# there, and would keep roots and conditions from being vectorised; neither flag changes a result.
set(GRADLINK_LOOP_OPTIONS -fno-math-errno -fno-trapping-math)
alone(gradlink_kvstore "${GRADLINK_LOOP_OPTIONS}" optimizer/simd/kernels_generic.cc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  alone(gradlink_kvstore "${GRADLINK_LOOP_OPTIONS};-mavx2" optimizer/simd/kernels_avx2.cc)
  alone(gradlink_kvstore
    "${GRADLINK_LOOP_OPTIONS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512"
    optimizer/simd/kernels_avx512.cc)
endif()

# The key-value store engine, its optimizers and gradient compression.
add_library(gradlink_kvstore STATIC
  ${CMAKE_CURRENT_LIST_DIR}/aligned_buffer.cc
  ${CMAKE_CURRENT_LIST_DIR}/allreduce_agreement.cc
  ${CMAKE_CURRENT_LIST_DIR}/allreduce_engine.cc
  ${CMAKE_CURRENT_LIST_DIR}/allreduce_store.cc
  ${CMAKE_CURRENT_LIST_DIR}/allreduce_sums.cc
  ${CMAKE_CURRENT_LIST_DIR}/compression.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_buffers.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_engine.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_link.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_placement.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_states.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_store.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_terms.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_transfer.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_transfers.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_collectives.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_device_site.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_dist_site.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_dist_store.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_engine.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_host_site.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_item.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_marks.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_places.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_round.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_step.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_store.cc
  ${CMAKE_CURRENT_LIST_DIR}/key_lane.cc
  ${CMAKE_CURRENT_LIST_DIR}/key_work.cc
  ${CMAKE_CURRENT_LIST_DIR}/local_store.cc
  ${CMAKE_CURRENT_LIST_DIR}/lr_scheduler.cc
  ${CMAKE_CURRENT_LIST_DIR}/optimizer.cc
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_math.cc
  ${CMAKE_CURRENT_LIST_DIR}/scheduler.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_control.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_loop.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_merge.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_pipeline.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_replies.cc
  ${CMAKE_CURRENT_LIST_DIR}/server_shard.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/kernels_generic.cc
  ${CMAKE_CURRENT_LIST_DIR}/state_file.cc
  ${CMAKE_CURRENT_LIST_DIR}/store_checks.cc
  ${CMAKE_CURRENT_LIST_DIR}/update_run.cc
  ${CMAKE_CURRENT_LIST_DIR}/whole_file.cc)
target_link_libraries(gradlink_kvstore PUBLIC gradlink_core PRIVATE gradlink_nccl gradlink_cuda)

# The loops of kvstore/simd are compiled once a SIMD level. errno and floating-point traps are nobody's business there,
# and would keep roots and conditions from being vectorised; neither flag changes a result.
set(GRADLINK_LOOP_OPTIONS -fno-math-errno -fno-trapping-math)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simd/kernels_generic.cc PROPERTIES
  COMPILE_OPTIONS "${GRADLINK_LOOP_OPTIONS}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  target_sources(gradlink_kvstore PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/simd/kernels_avx2.cc
    ${CMAKE_CURRENT_LIST_DIR}/simd/kernels_avx512.cc)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simd/kernels_avx2.cc PROPERTIES
    COMPILE_OPTIONS "${GRADLINK_LOOP_OPTIONS};-mavx2")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simd/kernels_avx512.cc PROPERTIES
    COMPILE_OPTIONS
    "${GRADLINK_LOOP_OPTIONS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()

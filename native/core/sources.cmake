# Element types, reduce ops, SIMD kernels, threads, errors: nothing of Node, CUDA or MPI.
add_library(gradlink_core STATIC
  ${CMAKE_CURRENT_LIST_DIR}/call.cc
  ${CMAKE_CURRENT_LIST_DIR}/call_differences.cc
  ${CMAKE_CURRENT_LIST_DIR}/communicator.cc
  ${CMAKE_CURRENT_LIST_DIR}/error.cc
  ${CMAKE_CURRENT_LIST_DIR}/forwarding_communicator.cc
  ${CMAKE_CURRENT_LIST_DIR}/fusion.cc
  ${CMAKE_CURRENT_LIST_DIR}/hierarchical.cc
  ${CMAKE_CURRENT_LIST_DIR}/hierarchical_agree.cc
  ${CMAKE_CURRENT_LIST_DIR}/hierarchical_pieces.cc
  ${CMAKE_CURRENT_LIST_DIR}/hierarchical_wire.cc
  ${CMAKE_CURRENT_LIST_DIR}/neighbors.cc
  ${CMAKE_CURRENT_LIST_DIR}/node_map.cc
  ${CMAKE_CURRENT_LIST_DIR}/one_host.cc
  ${CMAKE_CURRENT_LIST_DIR}/rank_names.cc
  ${CMAKE_CURRENT_LIST_DIR}/reduce_kernels.cc
  ${CMAKE_CURRENT_LIST_DIR}/shaped_communicator.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/avx2.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/avx512.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/level.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/neon.cc
  ${CMAKE_CURRENT_LIST_DIR}/simd/scalar.cc
  ${CMAKE_CURRENT_LIST_DIR}/thread_pool.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_arithmetic.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_memory.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_service.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_table.cc
  ${CMAKE_CURRENT_LIST_DIR}/wire_windows.cc
  ${CMAKE_CURRENT_LIST_DIR}/work_queue.cc)
target_include_directories(gradlink_core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(gradlink_core PUBLIC Threads::Threads)

# Each instruction set's file alone is compiled for it; without these flags the file has an empty table.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simd/avx2.cc PROPERTIES
    COMPILE_OPTIONS "-mavx2;-mf16c")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/simd/avx512.cc PROPERTIES
    COMPILE_OPTIONS "-mavx2;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()

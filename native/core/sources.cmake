# Element types, reduce ops, SIMD kernels, threads, errors: nothing of Node, CUDA or MPI.
add_library(gradlink_core STATIC
  ${CMAKE_CURRENT_LIST_DIR}/error.cc
  ${CMAKE_CURRENT_LIST_DIR}/thread_pool.cc
  ${CMAKE_CURRENT_LIST_DIR}/work_queue.cc)
target_include_directories(gradlink_core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(gradlink_core PUBLIC Threads::Threads)

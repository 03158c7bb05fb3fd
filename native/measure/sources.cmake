# Timed loops and exact test patterns.
add_library(gradlink_measure STATIC
  ${CMAKE_CURRENT_LIST_DIR}/collective_loop.cc
  ${CMAKE_CURRENT_LIST_DIR}/collective_record.cc
  ${CMAKE_CURRENT_LIST_DIR}/memory_bandwidth.cc
  ${CMAKE_CURRENT_LIST_DIR}/pattern.cc)
target_link_libraries(gradlink_measure PUBLIC gradlink_core PRIVATE gradlink_cuda)

# The embedded engine: ranks are devices of one process, worker threads, or processes of one host.
add_library(gradlink_shm STATIC
  ${CMAKE_CURRENT_LIST_DIR}/call.cc
  ${CMAKE_CURRENT_LIST_DIR}/direct.cc
  ${CMAKE_CURRENT_LIST_DIR}/local_group.cc)
target_link_libraries(gradlink_shm PUBLIC gradlink_core)

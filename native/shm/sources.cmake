# The embedded engine: ranks are devices of one process, worker threads, or processes of one host.
add_library(gradlink_shm STATIC
  ${CMAKE_CURRENT_LIST_DIR}/direct.cc
  ${CMAKE_CURRENT_LIST_DIR}/joined.cc
  ${CMAKE_CURRENT_LIST_DIR}/joined_ways.cc
  ${CMAKE_CURRENT_LIST_DIR}/local_group.cc
  ${CMAKE_CURRENT_LIST_DIR}/mailbox.cc
  ${CMAKE_CURRENT_LIST_DIR}/meeting.cc
  ${CMAKE_CURRENT_LIST_DIR}/meeting_processes.cc
  ${CMAKE_CURRENT_LIST_DIR}/meeting_threads.cc
  ${CMAKE_CURRENT_LIST_DIR}/neighbor_row.cc
  ${CMAKE_CURRENT_LIST_DIR}/process_segment.cc
  ${CMAKE_CURRENT_LIST_DIR}/segment.cc
  ${CMAKE_CURRENT_LIST_DIR}/session.cc
  ${CMAKE_CURRENT_LIST_DIR}/shared_direct.cc
  ${CMAKE_CURRENT_LIST_DIR}/shared_regions.cc
  ${CMAKE_CURRENT_LIST_DIR}/staged.cc
  ${CMAKE_CURRENT_LIST_DIR}/staged_all_reduce.cc
  ${CMAKE_CURRENT_LIST_DIR}/staging_styles.cc
  ${CMAKE_CURRENT_LIST_DIR}/wait.cc
  ${CMAKE_CURRENT_LIST_DIR}/window.cc
  ${CMAKE_CURRENT_LIST_DIR}/wire.cc)
target_link_libraries(gradlink_shm PUBLIC gradlink_core)

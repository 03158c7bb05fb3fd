# The key-value store engine, its optimizers and gradient compression.
add_library(gradlink_kvstore STATIC
  ${CMAKE_CURRENT_LIST_DIR}/store.cc)
target_link_libraries(gradlink_kvstore PUBLIC gradlink_core)

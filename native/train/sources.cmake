# What data-parallel training needs in native code: gradients gathered in buckets, and what compresses them.
add_library(gradlink_train STATIC
  ${CMAKE_CURRENT_LIST_DIR}/bucket_hook.cc
  ${CMAKE_CURRENT_LIST_DIR}/gradient_buckets.cc
  ${CMAKE_CURRENT_LIST_DIR}/power_sgd.cc)
target_link_libraries(gradlink_train PUBLIC gradlink_core PRIVATE gradlink_kvstore)

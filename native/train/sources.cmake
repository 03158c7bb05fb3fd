# What data-parallel training needs in native code: gradients gathered in buckets, and what compresses them.
add_library(gradlink_train STATIC)
unite(gradlink_train buckets
  bucket_hook.cc
  gradient_buckets.cc
  power_sgd.cc)
target_link_libraries(gradlink_train PUBLIC gradlink_core PRIVATE gradlink_kvstore)
precompile_standard_headers(gradlink_train)

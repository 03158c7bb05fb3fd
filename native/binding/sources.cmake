# The Node-API skin. The header folders are npm packages; scripts/build.mjs passes them.
set(NODE_ADDON_API_DIR "" CACHE PATH "folder of napi.h (the npm package node-addon-api)")
set(NODE_API_HEADERS_DIR "" CACHE PATH "folder of node_api.h (the npm package node-api-headers)")

add_library(gradlink MODULE
  ${CMAKE_CURRENT_LIST_DIR}/addon.cc
  ${CMAKE_CURRENT_LIST_DIR}/args.cc
  ${CMAKE_CURRENT_LIST_DIR}/buckets_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/buffer_view.cc
  ${CMAKE_CURRENT_LIST_DIR}/communicator_calls.cc
  ${CMAKE_CURRENT_LIST_DIR}/communicator_handle.cc
  ${CMAKE_CURRENT_LIST_DIR}/communicator_join.cc
  ${CMAKE_CURRENT_LIST_DIR}/communicator_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_calls.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_open.cc
  ${CMAKE_CURRENT_LIST_DIR}/dist_server.cc
  ${CMAKE_CURRENT_LIST_DIR}/environment.cc
  ${CMAKE_CURRENT_LIST_DIR}/errors.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_buffer.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_info.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_measure.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_queue.cc
  ${CMAKE_CURRENT_LIST_DIR}/gpu_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/job_join.cc
  ${CMAKE_CURRENT_LIST_DIR}/kvstore_args.cc
  ${CMAKE_CURRENT_LIST_DIR}/kvstore_call.cc
  ${CMAKE_CURRENT_LIST_DIR}/kvstore_handle.cc
  ${CMAKE_CURRENT_LIST_DIR}/kvstore_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/measure_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/mpi_join.cc
  ${CMAKE_CURRENT_LIST_DIR}/neighbor_calls.cc
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_spec.cc
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_wrap.cc
  ${CMAKE_CURRENT_LIST_DIR}/pending_op.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_wrap.cc)
set_target_properties(gradlink PROPERTIES PREFIX "" SUFFIX ".node")
target_include_directories(gradlink SYSTEM PRIVATE ${NODE_ADDON_API_DIR} ${NODE_API_HEADERS_DIR})
# Swallow: throwing into an environment that is going down would abort the process.
target_compile_definitions(gradlink PRIVATE NAPI_VERSION=8 NAPI_CPP_EXCEPTIONS NODE_ADDON_API_DISABLE_DEPRECATED
  NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
target_link_libraries(gradlink PRIVATE gradlink_shm gradlink_mpi gradlink_kvstore gradlink_measure gradlink_train gradlink_nccl gradlink_cuda
  ${CMAKE_DL_LIBS})
# nodelete: a worker's end may not unload code that other threads still run.
target_link_options(gradlink PRIVATE -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)

# With the C++ library inside, the addon asks less of a system: that of GCC 12 is newer than what RHEL 9 has. libgcc stays
# outside, and what is unused is dropped, since Debian's builds of them would ask for glibc 2.35 and 2.36. Fedora packs the
# archive apart (libstdc++-static); who builds for the own machine does without. Sanitizers need the shared one.
if(NOT GRADLINK_SANITIZE)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++)
  check_cxx_source_compiles("#include <string>\nint main(int n, char** v) { return std::string(v[0]).size() == std::size_t(n); }"
    GRADLINK_STATIC_LIBSTDCXX)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(GRADLINK_STATIC_LIBSTDCXX)
    target_link_options(gradlink PRIVATE -static-libstdc++ -Wl,--gc-sections)
  endif()
endif()

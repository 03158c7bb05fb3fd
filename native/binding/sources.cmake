# The Node-API skin. cmake-js finds the folders of napi.h and node_api.h (npm packages) and passes them.
set(CMAKE_JS_INC "" CACHE STRING "folders of napi.h and node_api.h")

add_library(gradlink MODULE)
unite(gradlink base
  addon.cc
  args.cc
  backing_store.cc
  buffer_view.cc
  environment.cc
  errors.cc
  external_memory.cc
  gpu/buffer.cc
  gpu/info.cc
  gpu/queue.cc
  gpu/gpu_wrap.cc
  measure/gpu_measure.cc
  measure/store_check.cc
  measure/measure_wrap.cc
  pending_op.cc)
unite(gradlink communicator
  communicator/buckets_wrap.cc
  communicator/call_parts.cc
  communicator/calls.cc
  communicator/group_calls.cc
  communicator/handle.cc
  communicator/job_join.cc
  communicator/join.cc
  communicator/joinable_calls.cc
  communicator/mpi_join.cc
  communicator/registered.cc
  communicator/split.cc
  communicator/window_wrap.cc
  communicator/communicator_wrap.cc)
unite(gradlink store
  store/args.cc
  store/call.cc
  store/dist_calls.cc
  store/dist_open.cc
  store/dist_server.cc
  store/handle.cc
  store/optimizer_spec.cc
  store/optimizer_wrap.cc
  store/server_trace.cc
  store/updater_call.cc
  store/store_wrap.cc)
target_precompile_headers(gradlink PRIVATE ${GRADLINK_STANDARD_HEADERS} ${CMAKE_CURRENT_LIST_DIR}/napi_setup.h)
set_target_properties(gradlink PROPERTIES PREFIX "" SUFFIX ".node")
target_include_directories(gradlink SYSTEM PRIVATE ${CMAKE_JS_INC})
# Swallow: throwing into an environment that is going down would abort the process.
target_compile_definitions(gradlink PRIVATE NAPI_VERSION=8 NAPI_CPP_EXCEPTIONS NODE_ADDON_API_DISABLE_DEPRECATED
  NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
target_link_libraries(gradlink PRIVATE gradlink_shm gradlink_messages gradlink_kvstore gradlink_measure gradlink_train gradlink_nccl gradlink_cuda
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

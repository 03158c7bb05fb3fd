# Stand-ins for libcuda.so.1, libnvidia-ml.so.1 and libnccl.so.2, into fakes/ of the build folder: see README.md.
# add_fake(TARGET OUTPUT_NAME VERSION SOURCE...): lib<OUTPUT_NAME>.so.<VERSION>, with what all fakes share.
set(fakes ${CMAKE_CURRENT_LIST_DIR})
function(add_fake target output version)
  add_library(${target} SHARED)
  unite(${target} fake ${ARGN} ${fakes}/support/environment.cc ${fakes}/support/leaks.cc
    ${fakes}/support/machine.cc)
  target_include_directories(${target} PRIVATE ${fakes} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE Threads::Threads)
  # AddressSanitizer takes some addresses of a library's own thread-local blocks for something else and fails at exit.
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec ${GRADLINK_FAKE_OPTIONS})
  # Two fakes in one process share no object but what is exported on purpose.
  target_link_options(${target} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${output} SUFFIX .so.${version}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes)
  if(NOT TARGET fakes)
    add_custom_target(fakes)
  endif()
  add_dependencies(fakes ${target})
endfunction()

add_fake(fake_cuda cuda 1
  ${fakes}/cuda/api_device.cc
  ${fakes}/cuda/api_graph.cc
  ${fakes}/cuda/api_memory.cc
  ${fakes}/cuda/api_module.cc
  ${fakes}/cuda/api_stream.cc
  ${fakes}/cuda/capture.cc
  ${fakes}/cuda/context.cc
  ${fakes}/cuda/cost.cc
  ${fakes}/cuda/cubin.cc
  ${fakes}/cuda/faults.cc
  ${fakes}/cuda/host_link.cc
  ${fakes}/cuda/kernel_table.cc
  ${fakes}/cuda/leaks.cc
  ${fakes}/cuda/memory.cc
  ${fakes}/cuda/ptx_kernels.cc
  ${fakes}/ptx/arithmetic.cc
  ${fakes}/ptx/bits.cc
  ${fakes}/ptx/comparison.cc
  ${fakes}/ptx/control.cc
  ${fakes}/ptx/conversion.cc
  ${fakes}/ptx/decoder.cc
  ${fakes}/ptx/memory.cc
  ${fakes}/ptx/parser.cc
  ${fakes}/ptx/run.cc
  ${fakes}/cuda/step_kernel_table.cc
  ${fakes}/cuda/stream.cc)
add_fake(fake_nvml nvidia-ml 1 ${fakes}/nvml/nvml.cc)
if(EXISTS ${fakes}/nccl/sources.cmake)
  include(${fakes}/nccl/sources.cmake)
endif()

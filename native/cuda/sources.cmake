# The CUDA driver, NVML, and our kernels: loaded at run time, so that nothing of CUDA is needed to build.
#
# The kernels' PTX becomes strings of source files in the build folder. Raw strings: only their end mark could end them.
foreach(module kernels step_kernels)
  set(file ${CMAKE_CURRENT_LIST_DIR}/${module}.ptx)
  file(READ ${file} ptx)
  file(SHA256 ${file} digest)
  string(SUBSTRING ${digest} 0 16 digest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  string(REPLACE step_kernels StepKernels name ${module})
  string(REGEX REPLACE "^kernels$" Kernels name ${name})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${module}_ptx.cc @ONLY CONTENT [=[
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {

const char k@name@Ptx[] = R"ptx(@ptx@)ptx";
const char k@name@Digest[] = "@digest@";

}  // namespace gradlink::cuda
]=])
endforeach()

add_library(gradlink_cuda STATIC)
unite(gradlink_cuda device
  ${CMAKE_CURRENT_BINARY_DIR}/kernels_ptx.cc
  ${CMAKE_CURRENT_BINARY_DIR}/step_kernels_ptx.cc
  compress.cc
  device.cc
  driver.cc
  graph.cc
  health.cc
  info.cc
  kernel_image.cc
  kept_lists.cc
  installed.cc
  kernel_module.cc
  put_off.cc
  kernels.cc
  memory.cc
  nvml.cc
  shared_library.cc
  ranks/staged_communicator.cc
  step.cc
  stream.cc
  task_ring.cc
  ranks/window_memory.cc)
target_link_libraries(gradlink_cuda PUBLIC gradlink_core PRIVATE ${CMAKE_DL_LIBS})
precompile_standard_headers(gradlink_cuda)

# The CUDA driver, NVML, and our kernels: loaded at run time, so that nothing of CUDA is needed to build.
#
# The kernels' PTX becomes a string of a source file in the build folder. A raw string: only its end mark could end it.
set(ptx "")
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/kernels.ptx)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/kernels.ptx ptx)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kernels.ptx)
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/kernels_ptx.cc @ONLY CONTENT [=[
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {

const char kernelsPtx[] = R"ptx(@ptx@)ptx";

}  // namespace gradlink::cuda
]=])

add_library(gradlink_cuda STATIC
  ${CMAKE_CURRENT_LIST_DIR}/device.cc
  ${CMAKE_CURRENT_LIST_DIR}/driver.cc
  ${CMAKE_CURRENT_LIST_DIR}/health.cc
  ${CMAKE_CURRENT_LIST_DIR}/info.cc
  ${CMAKE_CURRENT_LIST_DIR}/memory.cc
  ${CMAKE_CURRENT_LIST_DIR}/nvml.cc
  ${CMAKE_CURRENT_LIST_DIR}/shared_library.cc
  ${CMAKE_CURRENT_LIST_DIR}/stream.cc
  ${CMAKE_CURRENT_BINARY_DIR}/kernels_ptx.cc)
target_link_libraries(gradlink_cuda PUBLIC gradlink_core PRIVATE ${CMAKE_DL_LIBS})

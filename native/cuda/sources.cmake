# The CUDA driver, NVML, and our kernels: loaded at run time, so that nothing of CUDA is needed to build.
#
# The kernels' PTX becomes arrays of a source file in the build folder. It stays compressed, since it is two megabytes of text
# that most installations never read. Node, which builds and runs all this, unpacks it.
find_program(GRADLINK_NODE NAMES node nodejs REQUIRED)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_LIST_DIR}/ptx.json.br ${CMAKE_CURRENT_LIST_DIR}/ptx.mjs)
execute_process(
  COMMAND ${GRADLINK_NODE} ${CMAKE_CURRENT_LIST_DIR}/ptx.mjs ${CMAKE_CURRENT_BINARY_DIR}
  COMMAND_ERROR_IS_FATAL ANY)

add_library(gradlink_cuda STATIC)
unite(gradlink_cuda device
  ${CMAKE_CURRENT_BINARY_DIR}/kernels_ptx.cc
  compress.cc
  device.cc
  driver.cc
  graph.cc
  health.cc
  info.cc
  kernel_image.cc
  installed.cc
  kernel_module.cc
  kept_memory.cc
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

# NCCL, loaded at run time: communicators whose ranks are GPUs.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
if(sources)
  add_library(gradlink_nccl STATIC ${sources})
  target_link_libraries(gradlink_nccl PUBLIC gradlink_cuda PRIVATE ${CMAKE_DL_LIBS})
else()
  add_library(gradlink_nccl INTERFACE)
  target_link_libraries(gradlink_nccl INTERFACE gradlink_cuda)
endif()

# The stand-in for libnccl.so.2. Its sums are those of native/core.
add_fake(fake_nccl nccl 2
  ${fakes}/nccl/address.cc
  ${fakes}/nccl/api_collectives.cc
  ${fakes}/nccl/api_comm.cc
  ${fakes}/nccl/comm.cc
  ${fakes}/nccl/driver_link.cc
  ${fakes}/nccl/float8.cc
  ${fakes}/nccl/group.cc
  ${fakes}/nccl/hub.cc
  ${fakes}/nccl/port.cc
  ${fakes}/nccl/registrations.cc
  ${fakes}/nccl/steps.cc
  ${fakes}/nccl/wire.cc)
target_link_libraries(fake_nccl PRIVATE gradlink_core ${CMAKE_DL_LIBS})

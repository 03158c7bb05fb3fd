# The embedded engine: ranks are devices of one process, worker threads, or processes of one host.
add_library(gradlink_shm STATIC)
unite(gradlink_shm calls
  joined.cc
  local_group.cc
  session.cc
  shared_direct.cc
  staged.cc
  staged_all_reduce.cc
  staging_styles.cc)
unite(gradlink_shm segment
  mailbox.cc
  rendezvous/addresses.cc
  rendezvous/leader.cc
  rendezvous/rendezvous.cc
  rendezvous/packets.cc
  rendezvous/processes.cc
  rendezvous/secret.cc
  rendezvous/spare_rings.cc
  rendezvous/threads.cc
  process_segment.cc
  segment.cc
  shared_regions.cc
  wait.cc
  wake_up.cc
  window.cc
  shm_wire.cc)
target_link_libraries(gradlink_shm PUBLIC gradlink_core)
precompile_standard_headers(gradlink_shm)

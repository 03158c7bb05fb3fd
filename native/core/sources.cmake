# Element types, reduce ops, SIMD kernels, threads, errors: nothing of Node, CUDA or MPI.
add_library(gradlink_core STATIC)
unite(gradlink_core calls
  agreement.cc
  call.cc
  collective.cc
  communicator.cc
  counted.cc
  envelope.cc
  error.cc
  forwarding_communicator.cc
  fusion.cc
  joinable.cc
  neighbors.cc
  one_rank.cc
  hosts/hierarchical.cc
  hosts/hierarchical_agree.cc
  hosts/hierarchical_pieces.cc
  hosts/hierarchical_wire.cc
  hosts/node_map.cc
  hosts/one_host.cc
  hosts/rank_names.cc)
unite(gradlink_core kernels
  memory/aligned_buffer.cc
  memory/cache.cc
  direct.cc
  uncompress.cc
  kernels/copy_bytes.cc
  kernels/integer_weights.cc
  kernels/partial.cc
  kernels/reduce_kernels.cc
  kernels/result_stores.cc
  kernels/simd/level.cc
  sha256.cc
  thread_pool.cc
  memory/free_memory.cc
  memory/huge_pages.cc
  windows/arithmetic.cc
  windows/memory.cc
  windows/service.cc
  windows/table.cc
  windows/wire_windows.cc
  work_queue.cc)
target_include_directories(gradlink_core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(gradlink_core PUBLIC Threads::Threads)

# Each instruction set's file alone is compiled for it; without these flags the file has an empty table.
set(avx2 "")
set(avx512 "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(avx2 -mavx2 -mf16c)
  set(avx512 -mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
endif()
# Each level compiles the same loops, under the same names.
alone(gradlink_core "" kernels/simd/neon.cc kernels/simd/scalar.cc)
alone(gradlink_core "${avx2}" kernels/simd/avx2.cc)
alone(gradlink_core "${avx512}" kernels/simd/avx512.cc)
precompile_standard_headers(gradlink_core)

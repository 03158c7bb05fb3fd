# Unit tests of the native core, without Node: the files test/LAYER/**_test.cc make one executable a layer, so that each
# can run under its sanitizer. A case whose name or suite starts with Slow is left out of the quick runs.

# A case that hangs ends after so many seconds, with its name; a Slow one may take longer (ranks.cmake).
set(GRADLINK_CASE_LIMIT 60)
if(CMAKE_CROSSCOMPILING OR NOT GRADLINK_SANITIZE STREQUAL "")
  set(GRADLINK_CASE_LIMIT 300)
endif()
if(CMAKE_CROSSCOMPILING)
  # What is installed is for this machine; Debian's package googletest has the sources.
  add_subdirectory(/usr/src/googletest googletest EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()
include(GoogleTest)

# With GRADLINK_FAKES the tests load the stand-ins, else what the machine has: fakes/ is where the loader looks first.
set(test_libraries $ENV{LD_LIBRARY_PATH})
if(GRADLINK_FAKES)
  list(PREPEND test_libraries ${CMAKE_CURRENT_BINARY_DIR}/fakes)
endif()
list(JOIN test_libraries ":" test_libraries)

# add_layer_tests(LAYER LIBRARY...): the executable LAYER_test from test/LAYER/**_test.cc, each case registered with CTest.
function(add_layer_tests layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test/${layer}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${layer}_test)
  list(APPEND GRADLINK_TEST_TARGETS ${layer}_test)
  set(GRADLINK_TEST_TARGETS ${GRADLINK_TEST_TARGETS} PARENT_SCOPE)
  foreach(source ${sources})
    # The layer's tests are a unit; of kvstore's there are more than one should hold.
    set(group ${layer})
    if(source MATCHES "/kvstore/(conformance|worker|gpu|server)/")
      set(group kvstore_${CMAKE_MATCH_1})
    endif()
    unite(${layer}_test ${group} ${source})
  endforeach()
  target_link_libraries(${layer}_test PRIVATE ${ARGN} GTest::gtest GTest::gtest_main)
  target_compile_options(${layer}_test PRIVATE ${GRADLINK_TEST_OPTIONS})
  if(layer STREQUAL core)
    target_precompile_headers(core_test PRIVATE ${GRADLINK_STANDARD_HEADERS} <gtest/gtest.h>)
  else()
    target_precompile_headers(${layer}_test REUSE_FROM core_test)
  endif()
  # PRE_TEST: listing cases runs the executable, which would slow every build under a sanitizer.
  gtest_discover_tests(${layer}_test TEST_PREFIX ${layer}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${GRADLINK_CASE_LIMIT} LABELS ${layer} ENVIRONMENT LD_LIBRARY_PATH=${test_libraries})
endfunction()

add_layer_tests(core gradlink_core)
add_layer_tests(shm gradlink_shm)
# Ranks as forked processes: apart from shm, because ThreadSanitizer does not follow threads into a fork.
add_layer_tests(process gradlink_shm)
# Several hosts in one process: the embedded engine on every level.
add_layer_tests(hosts gradlink_shm)
# Jobs under real launchers: the cases start mpi_ranks, which is the ranks' program.
add_layer_tests(messages gradlink_messages)
file(GLOB mpi_ranks_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test/messages/ranks*.cc)
add_executable(mpi_ranks)
unite(mpi_ranks ranks ${mpi_ranks_sources})
target_link_libraries(mpi_ranks PRIVATE gradlink_messages)
# Not as the other tests: what its ranks compare with is a plain loop over as many elements as they move.
target_compile_options(mpi_ranks PRIVATE ${GRADLINK_TEST_OPTIONS} -O2)
# Beside the shims, where it looks for them.
set(mpi_folder ${CMAKE_CURRENT_BINARY_DIR})
if(CMAKE_LIBRARY_OUTPUT_DIRECTORY)
  set(mpi_folder ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
endif()
set_target_properties(mpi_ranks PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${mpi_folder})
add_dependencies(messages_test mpi_ranks gradlink_mpi_shims)
target_compile_definitions(messages_test PRIVATE GRADLINK_TEST_FOLDER="${mpi_folder}")
add_layer_tests(cuda gradlink_cuda)
# Compared with cuda.h itself where this machine has one.
find_path(GRADLINK_CUDA_HEADERS cuda.h HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include NO_DEFAULT_PATH)
if(GRADLINK_CUDA_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/test/cuda/abi_test.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${GRADLINK_CUDA_HEADERS};-DGRADLINK_CUDA_HEADERS" SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endif()
# nvml.h comes with CUDA, or with the driver's tools.
find_path(GRADLINK_NVML_HEADERS nvml.h HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda /usr PATH_SUFFIXES include NO_DEFAULT_PATH)
if(GRADLINK_NVML_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/test/cuda/nvml_abi_test.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${GRADLINK_NVML_HEADERS};-DGRADLINK_NVML_HEADERS;-Wno-deprecated-declarations" SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endif()
add_layer_tests(nccl gradlink_nccl gradlink_shm)
# nccl.h needs CUDA's headers.
find_path(GRADLINK_NCCL_HEADERS nccl.h HINTS ENV NCCL_HOME PATHS /usr/local/cuda /usr/local /usr PATH_SUFFIXES include NO_DEFAULT_PATH)
if(GRADLINK_NCCL_HEADERS AND GRADLINK_CUDA_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/test/nccl/abi_test.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${GRADLINK_NCCL_HEADERS};-isystem;${GRADLINK_CUDA_HEADERS};-DGRADLINK_NCCL_HEADERS" SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endif()
if(GRADLINK_FAKES)
  # Of the stand-ins themselves.
  add_layer_tests(fake gradlink_cuda)
  file(GLOB ptx_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/../test/fakes/ptx/*.cc)
  unite(fake_test ptx ${ptx_sources})
  target_include_directories(fake_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/../test/fakes)
endif()
add_layer_tests(kvstore gradlink_kvstore gradlink_shm gradlink_cuda)
add_layer_tests(measure gradlink_measure gradlink_shm gradlink_cuda)
add_layer_tests(train gradlink_train gradlink_shm)
if(GRADLINK_FAKES)
  # The kernels once more, as the package's PTX has them: what is shipped is what is tested. The ring that lists wait in
  # is the host's, and its thousands of launches take the interpreter half a minute.
  foreach(layer cuda kvstore measure)
    gtest_discover_tests(${layer}_test TEST_FILTER "Device*:*/Device*-DeviceTaskRing*:*ThanTheRing" TEST_PREFIX ptx.${layer}. TEST_LIST ptx_${layer}_TESTS
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${GRADLINK_CASE_LIMIT} LABELS ptx
      ENVIRONMENT LD_LIBRARY_PATH=${test_libraries} ENVIRONMENT_MODIFICATION GRADLINK_FAKE_KERNELS=set:ptx)
  endforeach()
endif()
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_LIST_DIR}/ranks.cmake)

# All of them, with what they load.
add_custom_target(tests)
add_dependencies(tests ${GRADLINK_TEST_TARGETS} mpi_ranks gradlink_mpi_shims)
if(GRADLINK_FAKES)
  add_dependencies(tests fakes)
endif()

# Sanitizers add weak symbols of their own.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64" AND GRADLINK_SANITIZE STREQUAL "")
  add_test(NAME core.WideInstructionsStayInTheirFiles COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM}
    -DARCHIVES=$<TARGET_FILE:gradlink_core>,$<TARGET_FILE:gradlink_kvstore>
    -P ${CMAKE_CURRENT_SOURCE_DIR}/test/wide_symbols.cmake)
endif()

# Not a test, but built with them: what nobody builds stops compiling.
foreach(benchmark device_store neighbors)
  add_executable(${benchmark}_benchmark EXCLUDE_FROM_ALL test/benchmarks/${benchmark}.cc)
  target_link_libraries(${benchmark}_benchmark PRIVATE gradlink_kvstore)
  target_compile_options(${benchmark}_benchmark PRIVATE ${GRADLINK_TEST_OPTIONS})
  add_dependencies(tests ${benchmark}_benchmark)
endforeach()

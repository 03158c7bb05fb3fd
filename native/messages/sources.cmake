# Ranks are processes of an MPI job. The engine is part of the addon and knows no MPI's header; a shim a MPI is a shared
# object of its own, loaded at first use.
add_library(gradlink_messages STATIC)
unite(gradlink_messages calls
  agreement.cc
  counted.cc
  point_to_point.cc
  moves.cc
  rank_communicator.cc
  stages.cc
  message_wire.cc)
unite(gradlink_messages job
  hosts.cc
  job_end.cc
  rank_link.cc
  mpi/loader.cc
  rendezvous.cc
  membership.cc
  pause.cc
  runtime.cc)
unite(gradlink_messages tcp
  tcp/address.cc
  tcp/connection.cc
  tcp/tcp_engine.cc
  tcp/frames.cc
  tcp/handshake.cc
  tcp/mailbox.cc
  tcp/tcp_messages.cc
  tcp/poly1305.cc
  tcp/tcp_rendezvous.cc
  tcp/seal.cc
  tcp/settings.cc
  tcp/tcp_shim.cc)
target_link_libraries(gradlink_messages PUBLIC gradlink_core ${CMAKE_DL_LIBS})
precompile_standard_headers(gradlink_messages)

# add_mpi_shim(FLAVOUR WRAPPER...): builds gradlink_FLAVOUR.so with what the first of these compiler wrappers that is
# installed and of this flavour says. None: no shim.
function(add_mpi_shim flavour)
  if(CMAKE_CROSSCOMPILING)
    return()  # the MPIs here are this machine's
  endif()
  foreach(name ${ARGN})
    find_program(gradlink_${name} ${name})
    if(NOT gradlink_${name})
      continue()
    endif()
    # Both families print the command that they would run.
    execute_process(COMMAND ${gradlink_${name}} -show OUTPUT_VARIABLE shown RESULT_VARIABLE failed
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    # Open MPI's alone knows this one.
    execute_process(COMMAND ${gradlink_${name}} --showme:version RESULT_VARIABLE not_openmpi
      OUTPUT_QUIET ERROR_QUIET)
    if(failed OR (flavour STREQUAL "openmpi" AND not_openmpi) OR (flavour STREQUAL "mpich" AND NOT not_openmpi))
      continue()
    endif()
    separate_arguments(words UNIX_COMMAND "${shown}")
    set(includes "")
    set(folders "")
    set(libraries "")
    foreach(word ${words})
      if(word MATCHES "^-I(.+)$")
        list(APPEND includes ${CMAKE_MATCH_1})
      elseif(word MATCHES "^-L(.+)$")
        list(APPEND folders ${CMAKE_MATCH_1})
      elseif(word MATCHES "^-l(.+)$")
        list(APPEND libraries ${CMAKE_MATCH_1})
      endif()
    endforeach()
    # A wrapper without the headers it speaks of builds nothing: its development package is not whole.
    set(CMAKE_REQUIRED_QUIET ON)
    find_path(gradlink_${name}_header mpi.h PATHS ${includes} /usr/include /usr/local/include NO_DEFAULT_PATH)
    if(NOT gradlink_${name}_header)
      continue()
    endif()
    add_library(gradlink_${flavour} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/messages/mpi/mpi_shim.cc)
    set_target_properties(gradlink_${flavour} PROPERTIES PREFIX "" SUFFIX ".so" BUILD_RPATH "${folders}")
    target_include_directories(gradlink_${flavour} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_include_directories(gradlink_${flavour} SYSTEM PRIVATE ${includes})
    target_link_directories(gradlink_${flavour} PRIVATE ${folders})
    target_link_libraries(gradlink_${flavour} PRIVATE ${libraries})
    message(STATUS "MPI: gradlink_${flavour}.so with ${gradlink_${name}}")
    return()
  endforeach()
  message(STATUS "MPI: no ${flavour} found (${ARGN}); gradlink_${flavour}.so is not built")
endfunction()

add_mpi_shim(openmpi mpicc.openmpi mpicc)
add_mpi_shim(mpich mpicc.mpich mpicc)
# Whatever was found, as one target.
add_custom_target(gradlink_mpi_shims)
foreach(flavour openmpi mpich)
  if(TARGET gradlink_${flavour})
    add_dependencies(gradlink_mpi_shims gradlink_${flavour})
  endif()
endforeach()

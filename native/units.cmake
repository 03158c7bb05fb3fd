# Which files are compiled together. Most of a file's time is reading headers (1.4 s of the standard library's, 2.4 s of
# napi.h), so the files of a group are one translation unit (CMake's unity build): a build from scratch takes a quarter of
# the time. A file that somebody works on leaves its group and is compiled alone: its first edit compiles the rest of the
# group once more, each further one that file only. scripts/native.mjs says which these are, in APART.
set(APART "" CACHE FILEPATH "a list of files, one a line, from the folder above native/, that are compiled alone")
set(GRADLINK_APART "")
if(APART AND EXISTS "${APART}")
  file(STRINGS "${APART}" GRADLINK_APART)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${APART}")
endif()
get_filename_component(GRADLINK_ROOT "${CMAKE_CURRENT_SOURCE_DIR}" DIRECTORY)

# Who only reads, as clang-tidy does, has each header once a target instead of once a group.
option(GRADLINK_WHOLE_TARGETS "all groups of a target are one unit" OFF)

# unite(TARGET GROUP FILE...): adds the files, named from the calling list's folder, to the target; those of one group make
# one unit. A group is at most ten seconds of compiling, so that the first edit of a file is no pause; groups of half that
# cost a fifth more in all.
function(unite target group)
  if(GRADLINK_WHOLE_TARGETS)
    set(group whole)
  endif()
  foreach(file ${ARGN})
    get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_LIST_DIR}")
    target_sources(${target} PRIVATE "${path}")
    file(RELATIVE_PATH name "${GRADLINK_ROOT}" "${path}")
    if(NOT name IN_LIST GRADLINK_APART)
      set_source_files_properties("${path}" PROPERTIES UNITY_GROUP "${group}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# alone(TARGET OPTIONS FILE...): adds a file with compiler options of its own, which neither a unit nor a precompiled
# header may share.
function(alone target options)
  foreach(file ${ARGN})
    get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_LIST_DIR}")
    target_sources(${target} PRIVATE "${path}")
    set_source_files_properties("${path}" PROPERTIES COMPILE_OPTIONS "${options}" SKIP_UNITY_BUILD_INCLUSION ON
      SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# What most files of the layers include. One precompiled header serves all of them, because they are compiled with the
# same options.
set(GRADLINK_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstddef> <cstdint>
  <cstring> <deque> <exception> <functional> <limits> <map> <memory> <mutex> <optional> <set> <span> <string>
  <string_view> <thread> <unordered_map> <utility> <vector>)

function(precompile_standard_headers target)
  if(target STREQUAL gradlink_core)
    target_precompile_headers(${target} PRIVATE ${GRADLINK_STANDARD_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM gradlink_core)
  endif()
endfunction()

# Read by ctest when it has listed the cases: what a case needs beyond its executable's label. Its last word says how many
# ranks it has, each a thread or a process that waits for the others: allReduce7 has seven, allReduceOn0011 four on two
# hosts. Beside another such case ranks only wait longer, and a case may miss a deadline for it. ctest gives a case that
# asks for more processors than there are all of them.
foreach(layer core shm process hosts messages cuda nccl fake kvstore measure train)
  foreach(case IN LISTS ${layer}_test_TESTS)
    set(ranks 1)
    if(case MATCHES "On([0-9]+)$")
      string(LENGTH "${CMAKE_MATCH_1}" ranks)
    elseif(layer MATCHES "^(shm|process|messages)$" AND case MATCHES "[A-Za-z]([2-9])$")
      set(ranks ${CMAKE_MATCH_1})
    elseif(layer MATCHES "^(process|hosts|messages)$" AND NOT case MATCHES "1$")
      set(ranks 2)
    endif()
    if(ranks GREATER 1)
      set_tests_properties("${case}" PROPERTIES PROCESSORS ${ranks})
    endif()
    # Its ranks are threads of one process, and no number in its name says how many.
    if(case MATCHES "LocalGroup.ReducesMoreThanTwoGiBPerRank$")
      set_tests_properties("${case}" PROPERTIES PROCESSORS 2)
    endif()
    # The first touch of gigabytes takes a minute on some machines.
    if(case MATCHES "[./]Slow")
      set_tests_properties("${case}" PROPERTIES TIMEOUT 300)
    endif()
  endforeach()
endforeach()

# Unit tests of the native core, without Node. One executable a layer, so that each can run under its sanitizer.
find_package(GTest REQUIRED)
include(GoogleTest)

# add_native_test(NAME layer SOURCES files...): one executable of GoogleTest cases, registered with CTest.
function(add_native_test name library)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ${library} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

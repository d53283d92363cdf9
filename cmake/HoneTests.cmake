# Tests: hone_add_test(target label source...) makes one gtest binary in <build>/tests and registers each of its cases.
#
# A case whose suite or name contains "Slow" has the label slow instead (up to 8 GiB, one at a time), one that contains
# "Gpu" the label gpu; `make test` runs what is neither. Everything else may use 2 GiB and 20 s.

function(hone_add_test target label)
  add_executable(${target} ${ARGN})
  hone_use_internals(${target})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE HONE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE hone_test_support GTest::gmock GTest::gtest_main)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

  set(patience 1)
  if(HONE_SANITIZE)
    set(patience 10)
  endif()
  math(EXPR unit_s "60 * ${patience}") # three times the 20 s a test may take, for machines that are busy
  math(EXPR slow_s "900 * ${patience}")
  # PRE_TEST: cases are listed when ctest starts, so that building never runs what it builds.
  set(common WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120)
  gtest_discover_tests(${target} ${common} TEST_FILTER "-*Slow*:*Gpu*" PROPERTIES LABELS ${label} TIMEOUT ${unit_s})
  gtest_discover_tests(${target} ${common} TEST_FILTER "*Slow*-*Gpu*" PROPERTIES LABELS slow TIMEOUT ${slow_s}
                       RUN_SERIAL TRUE)
  gtest_discover_tests(${target} ${common} TEST_FILTER "*Gpu*" PROPERTIES LABELS gpu TIMEOUT ${slow_s} RUN_SERIAL TRUE)
endfunction()

# tests/support: helpers shared by tests; tests/<folder>: one binary each; tests/headers: every public header alone.
function(hone_add_test_folders)
  foreach(entry errors=unit issues=unit faults=unit models=e2e onnx=e2e e2e=e2e)
    string(REPLACE "=" ";" entry ${entry})
    list(GET entry 0 folder)
    list(GET entry 1 label)
    hone_glob(${CMAKE_SOURCE_DIR}/tests/${folder} sources tests)
    list(FILTER sources EXCLUDE REGEX "_runner\\.cpp$") # programs of their own
    if(tests)
      hone_add_test(hone_tests_${folder} ${label} ${sources} ${tests})
      hone_use_schemas(hone_tests_${folder})
      target_link_libraries(hone_tests_${folder} PRIVATE hone_api)
      if(TARGET hone) # these folders run the program itself
        add_dependencies(hone_tests_${folder} hone)
      endif()
    endif()
  endforeach()

  # The conformance cases are files that scripts/conformance.py makes; this program runs them.
  if(EXISTS ${CMAKE_SOURCE_DIR}/tests/onnx/conformance_runner.cpp)
    add_executable(conformance_runner ${CMAKE_SOURCE_DIR}/tests/onnx/conformance_runner.cpp)
    hone_use_internals(conformance_runner)
    target_link_libraries(conformance_runner PRIVATE hone_api)
    set_target_properties(conformance_runner PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  endif()

  # One TU per public header that includes it twice and nothing before it: it compiles alone and guards itself.
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/include/hone/*.h)
  set(units)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "[^a-z0-9_]" "_" name ${header})
    set(unit ${CMAKE_BINARY_DIR}/generated/headers/${name}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND units ${unit})
  endforeach()
  hone_glob(${CMAKE_SOURCE_DIR}/tests/headers sources tests)
  if(tests)
    hone_add_test(hone_tests_headers unit ${tests} ${units})
    target_include_directories(hone_tests_headers PRIVATE ${CMAKE_SOURCE_DIR}/include)
  endif()
endfunction()

function(hone_add_test_support)
  hone_glob(${CMAKE_SOURCE_DIR}/tests/support sources tests)
  if(sources)
    add_library(hone_test_support STATIC ${sources})
    hone_use_internals(hone_test_support)
    target_include_directories(hone_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
    target_compile_definitions(hone_test_support PRIVATE HONE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(hone_test_support PUBLIC hone_api GTest::gmock GTest::gtest)
  else()
    add_library(hone_test_support INTERFACE)
  endif()
endfunction()

# tests/fuzz/<name>.cpp is one libFuzzer target, fuzz_<name>, built by clang with -DHONE_FUZZ=ON (preset "fuzz").
function(hone_add_fuzzers)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*.cpp)
  add_custom_target(fuzzers)
  foreach(source IN LISTS fuzzers)
    get_filename_component(name ${source} NAME_WE)
    add_executable(fuzz_${name} ${source})
    hone_use_internals(fuzz_${name})
    target_link_libraries(fuzz_${name} PRIVATE hone_api)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    add_dependencies(fuzzers fuzz_${name})
  endforeach()
endfunction()

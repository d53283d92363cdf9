# One static library per src/ folder, linked by cmake/house.txt; one gtest binary per folder that has tests.
#
# A folder that does not exist, or holds no .cpp yet, is an INTERFACE library: it links as nothing.

# Every *.cpp below `dir` into out_sources, and *_test.cpp into out_tests.
function(hone_glob dir out_sources out_tests)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cpp)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER all EXCLUDE REGEX "_test\\.cpp$")
  set(${out_sources} ${all} PARENT_SCOPE)
  set(${out_tests} ${tests} PARENT_SCOPE)
endfunction()

# src/<folder>/*.fbs -> <build>/generated/<folder>/<name>_generated.h, included as "<folder>/<name>_generated.h".
function(hone_compile_schemas)
  file(GLOB schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*/*.fbs)
  set(headers)
  foreach(schema IN LISTS schemas)
    get_filename_component(folder ${schema} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    get_filename_component(name ${schema} NAME_WE)
    set(out_dir ${CMAKE_BINARY_DIR}/generated/${folder})
    set(header ${out_dir}/${name}_generated.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out_dir}
      COMMAND ${HONE_FLATC} --cpp --scoped-enums --cpp-std c++17 --reflect-names -o ${out_dir} ${schema}
      DEPENDS ${schema}
      COMMENT "flatc ${folder}/${name}.fbs"
      VERBATIM)
    list(APPEND headers ${header})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
  add_custom_target(hone_schemas DEPENDS ${headers})
endfunction()

# What code inside src/ (and its tests) may see: its siblings' headers and the third-party libraries.
function(hone_use_internals target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE hone_flags hone_deps)
endfunction()

# The headers flatc writes, for engine and the folders that may include it. The others do without, so that their
# compile commands, and hence ccache's direct mode, are the same in every build directory.
function(hone_use_schemas target)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/generated)
  add_dependencies(${target} hone_schemas)
endfunction()

function(hone_add_folder folder)
  set(deps ${ARGN})
  list(TRANSFORM deps PREPEND hone_)
  hone_glob(${CMAKE_SOURCE_DIR}/src/${folder} sources tests)

  # A backend that is not built gives its place to src/backends/no_<backend>, when there is one.
  if(HONE_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "/backends/no_cuda/")
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cu)
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "/backends/cuda/")
    list(FILTER tests EXCLUDE REGEX "/backends/cuda/")
  endif()

  set(target hone_${folder})
  if(sources)
    add_library(${target} STATIC ${sources})
    hone_use_internals(${target})
    if(folder STREQUAL "engine" OR "engine" IN_LIST ARGN)
      hone_use_schemas(${target})
    endif()
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include)
    target_compile_definitions(${target} PRIVATE HONE_VERSION="${PROJECT_VERSION}")
    target_link_libraries(${target} PUBLIC ${deps})
    if(HONE_WITH_CUDA AND folder STREQUAL "backends")
      target_compile_definitions(${target} PUBLIC HONE_WITH_CUDA=1)
      target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    endif()
    if(folder STREQUAL "ops" OR folder STREQUAL "backends")
      # The reference gives the same bits everywhere, so the compiler may not contract a product and a sum into an FMA;
      # kernels say fma() where they mean it (GCC would contract across intrinsics too).
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(${target} INTERFACE ${deps})
  endif()

  if(HONE_TESTS AND tests)
    hone_add_test(hone_${folder}_test unit ${tests})
    target_link_libraries(hone_${folder}_test PRIVATE ${target})
    if(folder STREQUAL "engine" OR "engine" IN_LIST ARGN)
      hone_use_schemas(hone_${folder}_test)
    endif()
  endif()
endfunction()

# The folders in house order, each with the folders it may see.
function(hone_add_house)
  set(house ${CMAKE_SOURCE_DIR}/cmake/house.txt)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${house})
  file(STRINGS ${house} rows REGEX "^[a-z]+:")
  foreach(row IN LISTS rows)
    string(REGEX MATCHALL "[a-z]+" words "${row}")
    list(POP_FRONT words folder)
    hone_add_folder(${folder} ${words})
  endforeach()
endfunction()

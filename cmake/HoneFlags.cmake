# Compiler and linker settings shared by every target: hone_flags (an INTERFACE library) and the build-type defaults.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the static libraries also end in a Python module
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -g1 keeps line numbers in back traces at a fraction of -g's size.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# A struct written with its first members leaves the others at their defaults on purpose.
add_library(hone_flags INTERFACE)
target_compile_options(hone_flags
                       INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wno-missing-field-initializers>")
if(HONE_WERROR)
  target_compile_options(hone_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# Paths in errors and debug information are relative to the repository: error texts read "ops/conv.cpp:88", builds in
# two directories give the same objects, and ccache shares them between build directories.
target_compile_options(
  hone_flags
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=.>
            $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/src/=>
            $<$<COMPILE_LANGUAGE:CXX>:-fdebug-prefix-map=${CMAKE_BINARY_DIR}=.>
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-working-directory>)

# Sanitizers: HONE_SANITIZE is what -fsanitize= takes, e.g. "address,undefined".
if(HONE_SANITIZE)
  target_compile_options(hone_flags INTERFACE -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer
                                              -fno-sanitize-recover=all)
  target_link_options(hone_flags INTERFACE -fsanitize=${HONE_SANITIZE})
endif()
if(HONE_FUZZ)
  target_compile_options(hone_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Tools that only make the build faster are taken when they are there.
find_program(HONE_CCACHE ccache)
if(HONE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HONE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${HONE_CCACHE})
endif()
include(CheckCXXSourceCompiles)
foreach(linker mold lld)
  if(NOT HONE_LINKER)
    set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=${linker})
    check_cxx_source_compiles("int main() { return 0; }" HONE_LINKS_WITH_${linker})
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(HONE_LINKS_WITH_${linker})
      set(HONE_LINKER ${linker})
    endif()
  endif()
endforeach()
if(HONE_LINKER)
  target_link_options(hone_flags INTERFACE -fuse-ld=${HONE_LINKER})
endif()
target_link_options(hone_flags INTERFACE -Wl,--as-needed)

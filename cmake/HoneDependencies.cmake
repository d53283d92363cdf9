# The libraries Hone stands on (DESIGN: Dependencies), all from Debian packages that scripts/setup.sh installs.
# hone_deps carries them to every folder; --as-needed drops the ones a binary does not use.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 REQUIRED) # headers only: Boost.Math

find_path(HONE_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
find_path(HONE_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_path(HONE_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(HONE_XBYAK_INCLUDE xbyak/xbyak.h REQUIRED)
find_path(HONE_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(HONE_ZSTD_INCLUDE zstd.h REQUIRED)
find_path(HONE_ZIP_INCLUDE zip.h REQUIRED)
find_library(HONE_XXHASH_LIBRARY xxhash REQUIRED)
find_library(HONE_ZSTD_LIBRARY zstd REQUIRED)
find_library(HONE_ZIP_LIBRARY zip REQUIRED)
find_program(HONE_FLATC flatc REQUIRED)

add_library(hone_deps INTERFACE)
target_include_directories(
  hone_deps SYSTEM INTERFACE ${HONE_PROTOZERO_INCLUDE} ${HONE_FLATBUFFERS_INCLUDE} ${HONE_TOMLPP_INCLUDE}
                             ${HONE_XBYAK_INCLUDE} ${HONE_XXHASH_INCLUDE} ${HONE_ZSTD_INCLUDE} ${HONE_ZIP_INCLUDE})
target_link_libraries(
  hone_deps INTERFACE fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11 Boost::headers ZLIB::ZLIB
                      ${HONE_XXHASH_LIBRARY} ${HONE_ZSTD_LIBRARY} ${HONE_ZIP_LIBRARY} Threads::Threads
                      ${CMAKE_DL_LIBS})

# CUDA is a folder like any other: src/backends/cuda is compiled when that folder and nvcc both exist, and is left out
# otherwise. HONE_CUDA=OFF leaves it out by choice, ON makes its absence an error.
set(HONE_WITH_CUDA OFF)
if(HONE_CUDA STREQUAL "OFF")
  message(STATUS "CUDA backend: left out (HONE_CUDA=OFF)")
elseif(NOT IS_DIRECTORY ${CMAKE_SOURCE_DIR}/src/backends/cuda)
  message(STATUS "CUDA backend: left out (this tree has no src/backends/cuda)")
else()
  find_program(HONE_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin)
  if(HONE_NVCC)
    set(CMAKE_CUDA_COMPILER ${HONE_NVCC})
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90a-real 80-virtual)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc 12 and later have it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(HONE_WITH_CUDA ON)
    message(STATUS "CUDA backend: built with ${HONE_NVCC}")
  elseif(HONE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HONE_CUDA=ON, but no nvcc was found; put it on PATH or set CUDA_PATH")
  else()
    message(STATUS "CUDA backend: left out (no nvcc; put it on PATH or set CUDA_PATH to have it)")
  endif()
endif()

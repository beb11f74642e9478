# CUDA for the kernels: CAIRN_HAS_CUDA and cairn_cuda_library.
#
# CAIRN_CUDA AUTO builds with CUDA where there is an nvcc, ON insists on it. Kernels are compiled
# for what CAIRN_CUDA_GENCODE names: sm_90a in full; sm_80, sm_100 and PTX for what is newer, where
# kernel source leaves out what it does not offer there (kernels/simt).
set(CAIRN_HAS_CUDA OFF)
if(CAIRN_CUDA)
  find_program(CAIRN_NVCC nvcc
    HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(CAIRN_NVCC)
    set(CAIRN_HAS_CUDA ON)
  elseif(NOT CAIRN_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "CAIRN_CUDA is ${CAIRN_CUDA}, and there is no nvcc: put it into PATH, or "
                        "set CAIRN_CUDA to AUTO or OFF")
  endif()
endif()
message(STATUS "CUDA kernels: ${CAIRN_HAS_CUDA} (CAIRN_CUDA is ${CAIRN_CUDA})")

if(CAIRN_HAS_CUDA)
  set(CMAKE_CUDA_COMPILER ${CAIRN_NVCC})
  # Named by CAIRN_CUDA_GENCODE, for CMake 3.25 does not know all of them.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_FLAGS_RELEASE "-O2")
  if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CAIRN_CUDA_GENCODE
      "SHELL:-gencode arch=compute_90a,code=sm_90a" "SHELL:-gencode arch=compute_80,code=sm_80"
      "SHELL:-gencode arch=compute_100,code=[sm_100,compute_100]")
endif()

# cairn_cuda_library(NAME name SRCS file... DEPS target...): kernels and what launches them; any
# warning is an error.
function(cairn_cuda_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS})
  target_include_directories(${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${ARG_NAME} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:${CAIRN_CUDA_GENCODE}>
    "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>"
    "$<$<COMPILE_LANGUAGE:CXX>:${CAIRN_WARNINGS}>")
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} CUDA::cudart_static)
endfunction()

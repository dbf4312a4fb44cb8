# Whether ggml's graphs are computed by Outrider's threads (src/llama/kernels/compute_threads.h):
# where ggml is compiled for GCC's OpenMP and the linker can direct its calls. Only links of our own
# code are concerned; the peers keep OpenMP's threads.
include(CheckLinkerFlag)

set(OUTRIDER_OWN_THREADS OFF)
# Linker options that direct ggml's calls, where they are directed.
set(OUTRIDER_WRAP_OPTIONS "")

# Once ggml is known: sets both.
macro(outrider_choose_threads)
  check_linker_flag(CXX "LINKER:--wrap=outrider_no_such_function" OUTRIDER_LINKER_CAN_WRAP)
  if(NOT GGML_OPENMP_ENABLED)
    message(STATUS "Own threads: left out, ggml is built without OpenMP")
  elseif(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(STATUS "Own threads: left out, only GCC's OpenMP is known")
  elseif(GGML_BACKEND_DL)
    message(STATUS "Own threads: left out, ggml's backends are plugins (GGML_BACKEND_DL)")
  elseif(NOT OUTRIDER_LINKER_CAN_WRAP)
    message(STATUS "Own threads: left out, the linker does not know --wrap")
  else()
    message(STATUS "Own threads: built in")
    set(OUTRIDER_OWN_THREADS ON)
    foreach(name GOMP_parallel GOMP_barrier GOMP_single_start omp_get_thread_num
                 omp_get_num_threads)
      list(APPEND OUTRIDER_WRAP_OPTIONS "--wrap=${name}")
    endforeach()
    # The linker meets ggml's calls when it has been through our archive.
    list(APPEND OUTRIDER_WRAP_OPTIONS "--undefined=__wrap_GOMP_parallel")
  endif()
endmacro()

# For the layer that takes the calls, and for whoever links it.
function(outrider_own_threads)
  if(NOT OUTRIDER_OWN_THREADS)
    return()
  endif()
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/llama/kernels/compute_threads.cc" PROPERTIES
                              COMPILE_DEFINITIONS OUTRIDER_OWN_THREADS
                              SKIP_UNITY_BUILD_INCLUSION ON)
  list(TRANSFORM OUTRIDER_WRAP_OPTIONS PREPEND "LINKER:" OUTPUT_VARIABLE options)
  target_link_options(outrider_llama_kernels INTERFACE ${options})
endfunction()

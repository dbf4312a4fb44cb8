# Whether src/llama/kernels/kernel_buffer.cc, which puts our kernels into ggml, fits this llama.cpp:
# its private headers have no version. Where a small file that uses what it uses does not compile,
# the program is built without, uses ggml's kernels and says so.
function(outrider_own_kernels)
  if(NOT OUTRIDER_LLAMA)
    return()
  endif()
  set(folders "${OUTRIDER_LLAMA_DIR}/ggml/include" "${OUTRIDER_LLAMA_DIR}/ggml/src"
      "${OUTRIDER_LLAMA_DIR}/ggml/src/ggml-cpu")
  if(GGML_BACKEND_DL)
    set(OUTRIDER_OWN_KERNELS_FIT OFF)
    set(why "ggml's backends are loaded as plugins (GGML_BACKEND_DL)")
  else()
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # nothing to link with yet
    try_compile(OUTRIDER_OWN_KERNELS_FIT "${CMAKE_BINARY_DIR}/own_kernels"
                SOURCES "${PROJECT_SOURCE_DIR}/cmake/own_kernels_fit.cc"
                CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${folders}"
                CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE why)
  endif()
  if(OUTRIDER_OWN_KERNELS_FIT)
    message(STATUS "Own kernels: built in")
    set(room "${PROJECT_SOURCE_DIR}/src/llama/kernels")
    set_source_files_properties("${room}/kernel_buffer.cc" "${room}/kernel_operations.cc"
                                "${room}/kernel_worker.cc" PROPERTIES
                                INCLUDE_DIRECTORIES "${folders}"
                                COMPILE_DEFINITIONS OUTRIDER_OWN_KERNELS
                                # ggml's headers are C with C++ around it.
                                COMPILE_OPTIONS "-Wno-pedantic;-Wno-conversion;-Wno-shadow;-Wno-unused-function"
                                SKIP_UNITY_BUILD_INCLUSION ON)
  else()
    message(STATUS "Own kernels: left out, llama.cpp's are used:\n${why}")
    if(NOT GGML_BACKEND_DL)
      set(why "ggml's private headers are not those that they were written for (configure's output names the error)")
    endif()
    set_source_files_properties("${PROJECT_SOURCE_DIR}/src/llama/kernels/kernel_buffer.cc" PROPERTIES
                                COMPILE_DEFINITIONS "OUTRIDER_NO_KERNELS_WHY=\"${why}\""
                                SKIP_UNITY_BUILD_INCLUSION ON)
    # It calls what is left out.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/src/llama/kernels/kernel_operations_test.cc"
                                PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endfunction()

# The same program as where the headers do not fit, in a test of its own: the three files compiled
# once more, and linked in place of the library's. It is a program, since kernels are registered
# once in a process, and since the other files are those that everything else is tested with.
function(outrider_test_without_own_kernels folder)
  if(NOT TARGET outrider_lab OR NOT TARGET outrider_capi)
    return()
  endif()
  outrider_test(no_kernels_test no_kernels
                "${PROJECT_SOURCE_DIR}/${folder}/adapter.cc;${PROJECT_SOURCE_DIR}/${folder}/no_kernels_test.cc"
                outrider_capi outrider_lab outrider_testing_gguf)
endfunction()

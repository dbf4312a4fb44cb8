# The fuzz targets (fuzz/targets.h). Each is one function, in a file of its own.
#
# With the tests: fuzz_replay holds all of them, and a test a target runs what is kept in
# fuzz/corpus/<target>. With -DOUTRIDER_FUZZ=ON (clang; the preset "fuzz", `./dev fuzz`) each is a
# program fuzz_<target> of libFuzzer besides, which needs of our layers only those that it names: so
# those without llama.cpp are built in a minute or two.
option(OUTRIDER_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
if(OUTRIDER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "OUTRIDER_FUZZ needs clang and its libFuzzer; give "
                        "-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(outrider_flags INTERFACE -fsanitize=fuzzer-no-link)
  # What of llama.cpp reads strangers' bytes: without it libFuzzer sees nothing of GGUF's reader, of
  # grammars and of chat templates, and changes their inputs blindly.
  foreach(reader IN ITEMS ggml-base llama llama-common)
    if(TARGET ${reader})
      target_compile_options(${reader} PRIVATE
                             $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
    endif()
  endforeach()
endif()

# outrider_fuzz_target(NAME [FILE stem] [LAYERS layers...] [SOURCES paths from the root...]
#                      [THIRD_PARTY names...])
# SOURCES: files of a folder that would bring more with it than they need: llama.cpp, or all of the
# test support.
function(outrider_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE" "LAYERS;SOURCES;THIRD_PARTY")
  if(NOT arg_FILE)
    set(arg_FILE ${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY OUTRIDER_FUZZ_TARGETS ${name})
  set_property(GLOBAL APPEND PROPERTY OUTRIDER_FUZZ_FILES "${PROJECT_SOURCE_DIR}/fuzz/${arg_FILE}.cc")
  if(NOT OUTRIDER_FUZZ OR NOT OUTRIDER_TESTS OR NOT OUTRIDER_LLAMA)
    return()
  endif()
  set(links "")
  foreach(layer IN LISTS arg_LAYERS)
    outrider_target_name(${layer} target)
    list(APPEND links ${target})
  endforeach()
  foreach(third_party IN LISTS arg_THIRD_PARTY)
    outrider_third_party(${third_party} found)
    list(APPEND links ${found})
  endforeach()
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/")
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/fuzz/${arg_FILE}.cc"
                 "${PROJECT_SOURCE_DIR}/fuzz/libfuzzer_entry.cc"
                 "${PROJECT_SOURCE_DIR}/fuzz/violated.cc" ${arg_SOURCES})
  if("api" IN_LIST arg_LAYERS OR "http" IN_LIST arg_LAYERS)
    target_sources(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/fuzz/tame.cc")
  endif()
  target_compile_definitions(fuzz_${name} PRIVATE OUTRIDER_FUZZ_TARGET=${name})
  target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(fuzz_${name} PRIVATE outrider_flags outrider_sanitizer_defaults ${links})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
endfunction()

# Behind the last target: the program that replays, and its tests.
function(outrider_fuzz_replay)
  if(NOT OUTRIDER_TESTS OR NOT OUTRIDER_LLAMA OR OUTRIDER_FUZZ)
    return()
  endif()
  get_property(names GLOBAL PROPERTY OUTRIDER_FUZZ_TARGETS)
  get_property(files GLOBAL PROPERTY OUTRIDER_FUZZ_FILES)
  list(REMOVE_DUPLICATES files)
  set(root "${PROJECT_SOURCE_DIR}/fuzz")
  add_executable(fuzz_replay "${root}/replay_main.cc" "${root}/violated.cc" "${root}/tame.cc"
                 ${files})
  target_include_directories(fuzz_replay PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(fuzz_replay PRIVATE outrider_flags outrider_sanitizer_defaults
                        outrider_testing_gguf outrider_tools outrider_http outrider_capi
                        outrider_kernels GTest::gtest)
  set_target_properties(fuzz_replay PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  foreach(name IN LISTS names)
    add_test(NAME fuzz/${name}
             COMMAND fuzz_replay ${name} "${root}/corpus/${name}" ${OUTRIDER_FUZZ_MUTATIONS})
    set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 600
                         WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  endforeach()
endfunction()
set(OUTRIDER_FUZZ_MUTATIONS 10)  # of each input, in the tests

# Tests of what apps embed, from outside: C programs, the installed tree, the examples. They run on
# a pair of tiny models that the build writes.

# An example is right when it exits with 0: it compares its texts itself.
function(outrider_example_test name)
  add_test(NAME embedding/${name} COMMAND ${ARGN})
  # Tests must not leave anything in the user's cache.
  set(environment "OUTRIDER_CACHE=${PROJECT_BINARY_DIR}/tests/cache"
      "OUTRIDER_PROBE_BUDGET_MS=300" "OMP_WAIT_POLICY=passive"
      "OUTRIDER_LIBRARY=$<TARGET_FILE:outrider_shared>")
  set_tests_properties(embedding/${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${environment}")
endfunction()

function(outrider_embedding_tests)
  if(NOT OUTRIDER_TESTS OR NOT TARGET outrider_shared OR NOT TARGET outrider-tiny-pair)
    return()
  endif()
  set(target "${PROJECT_BINARY_DIR}/tests/tiny-target.gguf")
  set(draft "${PROJECT_BINARY_DIR}/tests/tiny-draft.gguf")
  add_custom_command(OUTPUT "${target}" "${draft}"
                     COMMAND outrider-tiny-pair "${target}" "${draft}"
                     DEPENDS outrider-tiny-pair VERBATIM)
  add_custom_target(outrider_tiny_models ALL DEPENDS "${target}" "${draft}")

  set(environment "OUTRIDER_CACHE=${PROJECT_BINARY_DIR}/tests/cache"
      "OUTRIDER_PROBE_BUDGET_MS=300" "OMP_WAIT_POLICY=passive")

  # Executables of their own: they replace operator new.
  outrider_test(allocation_test allocation
                "${PROJECT_SOURCE_DIR}/tests/allocation/allocation_test.cc"
                outrider_capi outrider_testing)
  set(failing_new "${PROJECT_SOURCE_DIR}/tests/allocation/failing_new.cc")
  outrider_test(ending_allocation_test allocation
                "${PROJECT_SOURCE_DIR}/tests/allocation/ending_allocation_test.cc;${failing_new}"
                outrider_remote outrider_serve outrider_testing)
  outrider_test(llama_allocation_test allocation
                "${PROJECT_SOURCE_DIR}/tests/allocation/llama_allocation_test.cc;${failing_new}"
                outrider_llama_model outrider_testing_gguf)

  add_executable(c_test "${PROJECT_SOURCE_DIR}/tests/c_test.c")
  target_link_libraries(c_test PRIVATE outrider_shared outrider_sanitizer_defaults Threads::Threads)
  set_target_properties(c_test PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_compile_options(c_test PRIVATE -Wall -Wextra -Wpedantic)
  add_test(NAME embedding/c_test COMMAND c_test "${target}" "${draft}")
  set_tests_properties(embedding/c_test PROPERTIES TIMEOUT 600 ENVIRONMENT "${environment}")
  # Without a cache folder, so that the probe takes its time in each of them.
  string(REPLACE "OUTRIDER_CACHE=${PROJECT_BINARY_DIR}/tests/cache" "OUTRIDER_CACHE=/dev/null/none"
         uncached "${environment}")
  foreach(leaving "load 0" "load 20" "load 60" "load 150" "text 0" "text 20" "text 150"
          "made-elsewhere 20" "made-elsewhere 60" "on-thread 20" "on-thread 60"
          "while-destroyed 20" "while-destroyed 60" "in-callback 0" "keeps 0")
    string(REPLACE " " ";" arguments "${leaving}")  # a crash at exit is a failure
    string(REPLACE " " "_" name "embedding/c_leaves_${leaving}_ms")
    add_test(NAME ${name} COMMAND c_test "${target}" "${draft}" ${arguments})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${uncached}")
  endforeach()

  # Many threads on the C interface while drafters come and go.
  outrider_third_party(nlohmann nlohmann)
  if(TARGET outrider AND nlohmann)
    add_executable(c_stress "${PROJECT_SOURCE_DIR}/tests/stress/c_stress.cc")
    target_link_libraries(c_stress PRIVATE outrider_shared ${nlohmann} outrider_sanitizer_defaults
                          Threads::Threads)
    set_target_properties(c_stress PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_compile_options(c_stress PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # of lists of Json, wrongly (GCC 12)
      target_compile_options(c_stress PRIVATE -Wno-maybe-uninitialized)
    endif()
    add_test(NAME embedding/c_stress
             COMMAND c_stress "${target}" "${draft}" "$<TARGET_FILE:outrider>"
                     "${PROJECT_BINARY_DIR}/tests")
    set_tests_properties(embedding/c_stress PROPERTIES TIMEOUT 1200 ENVIRONMENT "${environment}")
  endif()

  # The seed's flow, as its user would write it; and a control: it notices when a draft is missing.
  if(TARGET rpcserver_shared)
    add_executable(rpcserver_flow "${PROJECT_SOURCE_DIR}/tests/rpcserver_flow.c")
    target_link_libraries(rpcserver_flow PRIVATE rpcserver_shared outrider_sanitizer_defaults)
    set_target_properties(rpcserver_flow PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_compile_options(rpcserver_flow PRIVATE -Wall -Wextra -Wpedantic)
    add_test(NAME embedding/rpcserver_flow COMMAND rpcserver_flow "${target}" "${draft}")
    add_test(NAME embedding/rpcserver_flow_without_draft
             COMMAND rpcserver_flow "${target}" "${target}.none")
    set_tests_properties(embedding/rpcserver_flow embedding/rpcserver_flow_without_draft
                         PROPERTIES TIMEOUT 600 ENVIRONMENT "${environment}")
    set_tests_properties(embedding/rpcserver_flow_without_draft PROPERTIES WILL_FAIL TRUE)
    foreach(ms 0 20 60 150 400)  # a crash at exit is a failure
      add_test(NAME embedding/rpcserver_leaves_after_${ms}_ms
               COMMAND rpcserver_flow "${target}" "${draft}" ${ms})
      set_tests_properties(embedding/rpcserver_leaves_after_${ms}_ms
                           PROPERTIES TIMEOUT 600 ENVIRONMENT "${uncached}")
    endforeach()
  endif()

  foreach(example c_poll c_events cpp_runtime)
    file(GLOB source "${PROJECT_SOURCE_DIR}/examples/${example}.c*")
    add_executable(example_${example} "${source}")
    target_link_libraries(example_${example} PRIVATE outrider_sanitizer_defaults Threads::Threads)
    set_target_properties(example_${example} PROPERTIES C_STANDARD 99 C_EXTENSIONS ON
                          OUTPUT_NAME "${example}"
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    target_compile_options(example_${example} PRIVATE -Wall -Wextra)
    outrider_example_test(${example} example_${example} "${target}" "${draft}" 32)
  endforeach()
  target_link_libraries(example_c_poll PRIVATE outrider_shared)
  target_link_libraries(example_c_events PRIVATE outrider_shared)
  target_link_libraries(example_cpp_runtime PRIVATE outrider_flags outrider_backend)

  # What follows loads the library into a program that knows nothing of sanitizers.
  find_package(Python3 COMPONENTS Interpreter QUIET)
  if(Python3_FOUND AND NOT OUTRIDER_SANITIZE)
    outrider_example_test(python_ctypes "${Python3_EXECUTABLE}"
                          "${PROJECT_SOURCE_DIR}/examples/python_ctypes.py" "${target}" "${draft}"
                          32)
    add_test(NAME embedding/install
             COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/install/check.py"
                     "${PROJECT_BINARY_DIR}")
    set_tests_properties(embedding/install PROPERTIES TIMEOUT 600 RESOURCE_LOCK install)
    add_test(NAME embedding/demo
             COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/install/demo_test.py"
                     "$<TARGET_FILE:outrider>" "${target}" "${draft}")
    set_tests_properties(embedding/demo PROPERTIES TIMEOUT 600 ENVIRONMENT "${environment}")
    add_test(NAME embedding/shells
             COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/install/shells_test.py"
                     "$<TARGET_FILE:outrider>")
    set_tests_properties(embedding/shells PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# The functions behind the table in CMakeLists.txt. All of them take what is in the folder when
# CMake runs (CONFIGURE_DEPENDS: a new file is noticed by the next build), so that a folder may be
# missing, hold headers only, or hold no tests.
include(GoogleTest)

# From here on it is our own code; llama.cpp, added before, keeps its own standard.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(OUTRIDER_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()

# What tests link. They exist from the start, so that a layer can name them before outrider_testing
# has filled them.
add_library(outrider_testing INTERFACE)
add_library(outrider_testing_gguf INTERFACE)
target_link_libraries(outrider_testing_gguf INTERFACE outrider_testing)

# Sets RESULT to the targets behind a THIRD_PARTY name, or to NOTFOUND. A llama.cpp of the project
# that adds this one is none of ours: it may be of any version.
function(outrider_third_party name result)
  set(targets NOTFOUND)
  if(name STREQUAL "llama" AND OUTRIDER_LLAMA AND TARGET llama)
    set(targets llama llama-common)
  elseif(name STREQUAL "nlohmann")
    if(TARGET vendor::nlohmann)  # the one that llama.cpp carries: two versions would clash
      set(targets vendor::nlohmann)
    else()
      find_package(nlohmann_json 3.10 QUIET)
      if(TARGET nlohmann_json::nlohmann_json)
        set(targets nlohmann_json::nlohmann_json)
      endif()
    endif()
  elseif(name STREQUAL "httplib" AND OUTRIDER_LLAMA AND TARGET vendor::cpp-httplib)
    # <cpp-httplib/httplib.h> lies in the folder that llama.cpp gives to nlohmann's users only.
    set(targets vendor::cpp-httplib vendor::nlohmann)
  elseif(name STREQUAL "cli11")
    find_package(CLI11 QUIET)
    if(TARGET CLI11::CLI11)
      set(targets CLI11::CLI11)
    endif()
  elseif(name STREQUAL "toml")  # toml++, header only; Debian's CMake package links a library
    find_path(OUTRIDER_TOML_INCLUDE_DIR toml++/toml.h)
    mark_as_advanced(OUTRIDER_TOML_INCLUDE_DIR)
    if(OUTRIDER_TOML_INCLUDE_DIR AND NOT TARGET outrider_toml)
      add_library(outrider_toml INTERFACE)
      target_include_directories(outrider_toml SYSTEM INTERFACE "${OUTRIDER_TOML_INCLUDE_DIR}")
    endif()
    if(TARGET outrider_toml)
      set(targets outrider_toml)
    endif()
  elseif(name STREQUAL "gtest" AND TARGET GTest::gtest)
    set(targets GTest::gtest)
  endif()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()

# The target of a layer, of a room in it ("llama/files": outrider_llama_files) or of test support.
function(outrider_target_name layer result)
  string(REPLACE "/" "_" name "${layer}")
  set(${result} outrider_${name} PARENT_SCOPE)
endfunction()

# The targets of TESTED_WITH. They may be made later than the tests.
function(outrider_tested_with names result)
  set(targets "")
  foreach(name IN LISTS names)
    outrider_target_name(${name} target)
    list(APPEND targets ${target})
  endforeach()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()

# Turns LINKS and THIRD_PARTY into targets. A layer without a folder is passed over; a layer that
# is left out, or a third party that is not here, makes MISSING name it.
function(outrider_resolve links third_party result missing)
  set(targets "")
  set(absent "")
  foreach(link IN LISTS links)
    outrider_target_name(${link} target)
    if(TARGET ${target})
      list(APPEND targets ${target})
    else()
      get_property(left_out GLOBAL PROPERTY OUTRIDER_LEFT_OUT)
      if(link IN_LIST left_out)
        list(APPEND absent ${link})
      endif()
    endif()
  endforeach()
  foreach(name IN LISTS third_party)
    outrider_third_party(${name} found)
    if(found)
      list(APPEND targets ${found})
    else()
      list(APPEND absent ${name})
    endif()
  endforeach()
  set(${result} "${targets}" PARENT_SCOPE)
  set(${missing} "${absent}" PARENT_SCOPE)
endfunction()

# Above the engine little is computed, and with sanitizers a unit compiles in 26 seconds at -O0, in
# 42 at -O1.
set(above_engine "api|capi|catalog|http.*|rpcserver|run|serve|tools")
set(OUTRIDER_COMPUTES_LITTLE "^outrider_(${above_engine}|lab)$")

# Tests that compute little themselves, those and more: at -O0 a unit compiles in 20 seconds, at -O1
# in 25 to 31 (a Zen 1). The others simulate, draw or compare millions of numbers.
set(text_layers "llama_(chat|download|files|gguf|grammar|schema|vocabulary)")
set(OUTRIDER_TESTS_COMPUTE_LITTLE
    "^(${above_engine}|${text_layers}|backend|input|integration|json|machine|remote|request|store|testing.*)_test$")

# How that, and the tests' own code, is compiled with sanitizers. The undefined-behaviour sanitizer's
# checks of every pointer that is followed, which the address sanitizer makes in another way, are a
# third of the time, so they are left to the layers below: of two units 24 and 26 seconds become 14
# and 17.
function(outrider_little_sanitized target)
  target_compile_options(${target} PRIVATE -O0)
  if(OUTRIDER_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE
                           -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow)
  endif()
endfunction()

# A static library, or an interface library where there are only headers. Who links it compiles our
# headers, which are C++20.
function(outrider_library target sources)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src")
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PRIVATE outrider_flags PUBLIC Threads::Threads ${CMAKE_DL_LIBS} ${ARGN})
    if(OUTRIDER_SANITIZE AND target MATCHES "${OUTRIDER_COMPUTES_LITTLE}")
      outrider_little_sanitized(${target})
    elseif(target STREQUAL "outrider_tools" AND CMAKE_BUILD_TYPE STREQUAL "Release")
      # What reads options has nothing to be fast at. A unit: 40 seconds at -O3, 24 at -O1 (a Zen 1).
      target_compile_options(${target} PRIVATE -O1)
    endif()
    outrider_unity(${target})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}/src")
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} INTERFACE Threads::Threads ${ARGN})
  endif()
endfunction()

# Paths like "testing/..." and "tools/..." start at the root of the checkout.
function(outrider_see_root target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}")
  else()
    target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  endif()
endfunction()

# One executable of tests, one ctest entry a test. Test suites whose name begins with RealModel get
# the label `model`: they need the folder OUTRIDER_MODELS_DIR, and do not run under sanitizers.
function(outrider_test target prefix sources)
  if(NOT OUTRIDER_TESTS OR NOT sources)
    return()
  endif()
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE outrider_flags outrider_sanitizer_defaults ${ARGN}
                        GTest::gtest_main)
  set_target_properties(${target} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  # Of the tests' own code little is computed with, and it is half of what is compiled. Seconds a
  # unit: 39 at -O3, 21 at -O1; with sanitizers 47 at -O1, 21 at -O0.
  if(OUTRIDER_SANITIZE)
    outrider_little_sanitized(${target})
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    if(target MATCHES "${OUTRIDER_TESTS_COMPUTE_LITTLE}")
      target_compile_options(${target} PRIVATE -O0)
    else()
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
  outrider_unity(${target})
  set(common DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_PREFIX "${prefix}/"
      NO_PRETTY_VALUES)
  gtest_discover_tests(${target} ${common} TEST_FILTER "-RealModel*:*/RealModel*"
                       PROPERTIES TIMEOUT 900)
  gtest_discover_tests(${target} ${common} TEST_FILTER "RealModel*:*/RealModel*"
                       PROPERTIES TIMEOUT 1800 LABELS model)
endfunction()

# outrider_layer(NAME [LINKS layers...] [THIRD_PARTY names...] [TESTED_WITH testing... layers...])
# NAME is a folder of src, or a room in one: "llama/files".
function(outrider_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;THIRD_PARTY;TESTED_WITH")
  set(folder "${PROJECT_SOURCE_DIR}/src/${name}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h")
  if(NOT sources AND NOT headers)
    return()
  endif()
  outrider_resolve("${arg_LINKS}" "${arg_THIRD_PARTY}" links missing)
  if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "Layer ${name}: left out, for want of ${missing}")
    set_property(GLOBAL APPEND PROPERTY OUTRIDER_LEFT_OUT ${name})
    return()
  endif()
  set(tests "${sources}")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  outrider_target_name(${name} target)
  outrider_library(${target} "${sources}" ${links})
  if("testing_gguf" IN_LIST arg_TESTED_WITH AND NOT OUTRIDER_LLAMA)
    return()  # a room that knows no llama.cpp may still be tested with it
  endif()
  outrider_tested_with("${arg_TESTED_WITH}" tested_with)
  string(REPLACE "/" "_" test "${name}_test")
  outrider_test(${test} ${name} "${tests}" ${target} ${tested_with})
endfunction()

# The command: the folder without main.cc, with its rooms, is a library that its tests link; main.cc
# makes the executable `outrider` at the top of the build folder. LAB_FILES, ROOMS_ABOVE and
# ROOMS_BELOW say who may include what (tests/check_layers.py).
function(outrider_tool folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
                        "LINKS;THIRD_PARTY;TESTED_WITH;LAB_FILES;ROOMS_ABOVE;ROOMS_BELOW")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  foreach(room IN LISTS arg_ROOMS_ABOVE arg_ROOMS_BELOW)
    file(GLOB of_room CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/${room}/*.cc")
    list(APPEND sources ${of_room})
  endforeach()
  if(NOT sources)
    return()
  endif()
  if(NOT OUTRIDER_LLAMA)
    message(STATUS "The command outrider: left out, for want of llama")
    return()
  endif()
  outrider_resolve("${arg_LINKS}" "${arg_THIRD_PARTY}" links missing)
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "The command outrider needs ${missing}; './dev setup' installs what it can")
  endif()
  set(tests "${sources}")
  set(main "${PROJECT_SOURCE_DIR}/${folder}/main.cc")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(REMOVE_ITEM sources "${main}")
  outrider_library(outrider_${folder} "${sources}" ${links})
  outrider_see_root(outrider_${folder})
  if(EXISTS "${main}")
    add_executable(outrider "${main}")
    target_link_libraries(outrider PRIVATE outrider_flags outrider_sanitizer_defaults
                          outrider_${folder})
    set_target_properties(outrider PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
    outrider_says_commit(outrider)
    install(TARGETS outrider RUNTIME)
  endif()
  outrider_tested_with("${arg_TESTED_WITH}" tested_with)
  outrider_test(${folder}_test ${folder} "${tests}" outrider_${folder} ${tested_with})
endfunction()

# Test support. Files that match GGUF_FILES go to outrider_testing_gguf, which needs llama.cpp (or
# the JSON library that comes with it); the others to outrider_testing, which does not. <folder>/tools/a_b.cc becomes the program a-b.
function(outrider_testing folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
                        "LINKS;THIRD_PARTY;GGUF_FILES;TOOL_FILES;MODEL_TOOLS")
  set(root "${PROJECT_SOURCE_DIR}/${folder}")
  file(GLOB plain CONFIGURE_DEPENDS "${root}/*.cc")
  file(GLOB tools CONFIGURE_DEPENDS "${root}/tools/*.cc")
  if(NOT OUTRIDER_TESTS)
    return()
  endif()
  foreach(kind gguf tool)
    string(TOUPPER ${kind} upper)
    set(${kind} "")
    foreach(pattern IN LISTS arg_${upper}_FILES)
      file(GLOB matching CONFIGURE_DEPENDS "${root}/${pattern}.cc")
      list(APPEND ${kind} ${matching})
    endforeach()
    list(REMOVE_DUPLICATES ${kind})
    if(${kind})
      list(REMOVE_ITEM plain ${${kind}})
    endif()
  endforeach()
  if(gguf AND tool)
    list(REMOVE_ITEM gguf ${tool})
  endif()
  set(tool_tests "${tool}")  # they need the tiny models
  list(FILTER tool_tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tool EXCLUDE REGEX "_test\\.cc$")
  list(APPEND gguf ${tool_tests})

  set(needs_llama llama llama/gguf httplib cli11)
  set(pure_links ${arg_LINKS})
  set(pure_third_party ${arg_THIRD_PARTY})
  list(REMOVE_ITEM pure_links ${needs_llama})
  list(REMOVE_ITEM pure_third_party ${needs_llama})
  outrider_resolve("${pure_links}" "${pure_third_party}" links missing)
  outrider_testing_part(outrider_testing testing "${plain}" ${links})
  if(OUTRIDER_LLAMA)
    outrider_resolve("${arg_LINKS}" "${arg_THIRD_PARTY}" links missing)
    outrider_resolve("base;llama/gguf" "llama;cli11" tool_links missing)
    outrider_library(outrider_model_tools "${tool}" ${tool_links})
    outrider_see_root(outrider_model_tools)
    outrider_testing_part(outrider_testing_gguf testing_gguf "${gguf}" outrider_model_tools ${links})
    foreach(source IN LISTS tools)
      cmake_path(GET source STEM program)
      set(program_links outrider_testing_gguf ${links})
      if(program IN_LIST arg_MODEL_TOOLS)
        set(program_links outrider_model_tools)
      endif()
      string(REPLACE "_" "-" program "${program}")
      add_executable(${program} "${source}")
      target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}")
      target_link_libraries(${program} PRIVATE outrider_flags outrider_sanitizer_defaults
                            ${program_links})
      set_target_properties(${program} PROPERTIES
                            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
      if(OUTRIDER_SANITIZE)  # only what tests are made with is built
        set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
      endif()
    endforeach()
  endif()
endfunction()

function(outrider_testing_part target name sources)
  set(tests "${sources}")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  outrider_library(${target}_code "${sources}" ${ARGN})
  outrider_see_root(${target}_code)
  if(sources AND target STREQUAL "outrider_testing_gguf")
    target_link_libraries(${target}_code PUBLIC outrider_testing)
  endif()
  target_link_libraries(${target} INTERFACE ${target}_code)
  outrider_test(${name}_test testing "${tests}" ${target})
endfunction()

# Tests of everything together: <folder>/x_test.cc. They link all layers and the test support, and
# find the command by tests/build_paths.h. Those that check the sources themselves are Python.
function(outrider_integration_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  if(OUTRIDER_TESTS AND OUTRIDER_LLAMA AND sources)
    set_source_files_properties("${PROJECT_SOURCE_DIR}/${folder}/build_paths.cc" PROPERTIES
                                COMPILE_DEFINITIONS "OUTRIDER_BUILD_DIR=\"${PROJECT_BINARY_DIR}\"")
    set(links outrider_testing_gguf)
    foreach(candidate outrider_tools outrider_http outrider_capi outrider_api outrider_llama)
      if(TARGET ${candidate})
        list(APPEND links ${candidate})
      endif()
    endforeach()
    outrider_test(integration_test integration "${sources}" ${links})
    if(TARGET outrider)
      add_dependencies(integration_test outrider)
    endif()
  endif()

  find_package(Python3 COMPONENTS Interpreter QUIET)
  if(OUTRIDER_TESTS AND Python3_FOUND AND NOT OUTRIDER_SANITIZE)  # no preset changes the sources
    file(GLOB checks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.py")
    foreach(check IN LISTS checks)
      cmake_path(GET check STEM name)
      add_test(NAME sources/${name} COMMAND "${Python3_EXECUTABLE}" "${check}")
      # A bound for a slow machine: dev_test.py took 254 s beside a build on two shared cores.
      set_tests_properties(sources/${name} PROPERTIES TIMEOUT 1800)
    endforeach()
  endif()
endfunction()

# Programs that show how draft and verify are used in a decode loop of one's own: <folder>/a_b.cc
# becomes a_b, which sees llama.cpp as a user's own program would. Built with the tests, which run
# them (tests/build_paths.h). (Examples of what apps embed: embedding_tests.cmake.)
function(outrider_draft_examples folder)
  if(NOT OUTRIDER_TESTS OR NOT OUTRIDER_LLAMA)
    return()
  endif()
  foreach(name IN LISTS ARGN)
    add_executable(example_${name} "${PROJECT_SOURCE_DIR}/${folder}/${name}.cc")
    target_link_libraries(example_${name} PRIVATE outrider_flags outrider_sanitizer_defaults
                          outrider_draft outrider_verify llama)
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
    if(TARGET integration_test)
      add_dependencies(integration_test example_${name})
    endif()
  endforeach()
endfunction()

# Micro-benchmarks: <folder>/x_bench.cc becomes the program bench_x.
function(outrider_benchmarks folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  if(NOT OUTRIDER_BENCH OR NOT OUTRIDER_LLAMA OR NOT sources)
    return()
  endif()
  find_package(benchmark REQUIRED)
  set(links outrider_testing_gguf)
  foreach(layer base tree dist json verify model draft plan engine llama lab tools catalog http)
    if(TARGET outrider_${layer})
      list(APPEND links outrider_${layer})
    endif()
  endforeach()
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_bench$" "" name "${name}")
    add_executable(bench_${name} "${source}")
    target_include_directories(bench_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(bench_${name} PRIVATE outrider_flags outrider_sanitizer_defaults ${links}
                          benchmark::benchmark_main)
    set_target_properties(bench_${name} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  endforeach()
endfunction()

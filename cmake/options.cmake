# Options of Outrider's own build, and the flags that every target of ours gets (outrider_flags).
include(CheckCXXCompilerFlag)

option(OUTRIDER_LLAMA "Build the llama.cpp adapter, and with it the command" ON)
option(OUTRIDER_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(OUTRIDER_BENCH "Build the micro-benchmarks (needs Google Benchmark)" OFF)
option(OUTRIDER_WERROR "Treat warnings in our own code as errors" OFF)
option(OUTRIDER_CCACHE "Use ccache when it is installed" ON)
set(OUTRIDER_SANITIZE "" CACHE STRING "Sanitizers for us and llama.cpp: empty, address or thread")
set_property(CACHE OUTRIDER_SANITIZE PROPERTY STRINGS "" address thread)

# A project that adds this one chooses for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One set of objects for the command and for the libraries, llama.cpp's included: they can be put
# into a shared library, and nothing but what is marked leaves it.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Otherwise the statics of inline functions are names of the whole process, hidden or not: they
  # would be shared with an app's own llama.cpp, and keep the library from being unloaded.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
endif()

find_package(Threads REQUIRED)

# ccache. base_dir makes paths below the checkout relative and no_hash_dir forgets the build folder,
# so that a fresh clone elsewhere hits, whatever its cache folder: llama.cpp's source is compiled
# through a link below the build folder (llama.cmake).
if(OUTRIDER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(OUTRIDER_CCACHE_PROGRAM ccache)
  mark_as_advanced(OUTRIDER_CCACHE_PROGRAM)
  if(OUTRIDER_CCACHE_PROGRAM)
    set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
        CCACHE_NOHASHDIR=1 "${OUTRIDER_CCACHE_PROGRAM}")
    foreach(language C CXX CUDA)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endforeach()
  endif()
endif()

# A unit of several files (unity.cmake) includes them by whole paths, which __FILE__ would put into
# the assertions: ccache missed 21 of 112 objects in another checkout.
check_cxx_compiler_flag(-fmacro-prefix-map=/a/=/b/ OUTRIDER_HAS_MACRO_PREFIX_MAP)
if(OUTRIDER_HAS_MACRO_PREFIX_MAP)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")
endif()

# The address and thread sanitizers cover llama.cpp too (directory options reach the subproject): a
# buffer of ours that ggml overruns is found where it happens.
if(OUTRIDER_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined)
elseif(OUTRIDER_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(OUTRIDER_SANITIZE)
  message(FATAL_ERROR "OUTRIDER_SANITIZE is '${OUTRIDER_SANITIZE}'; give 'address' (which includes "
                      "undefined behaviour) or 'thread', or leave it empty")
endif()
# Every executable of ours links this; it sets the sanitizers' run-time options and suppressions.
add_library(outrider_sanitizer_defaults INTERFACE)
if(OUTRIDER_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${sanitizers};-fno-omit-frame-pointer>")
  add_link_options(${sanitizers})
  add_library(outrider_sanitizer_objects OBJECT
              "${PROJECT_SOURCE_DIR}/cmake/sanitizers/defaults.c")
  target_compile_definitions(outrider_sanitizer_objects PRIVATE
                             "OUTRIDER_SUPPRESSIONS=\"${PROJECT_SOURCE_DIR}/cmake/sanitizers\"")
  target_compile_options(outrider_sanitizer_objects PRIVATE -fno-sanitize=all)  # runs before them
  target_link_libraries(outrider_sanitizer_defaults INTERFACE
                        outrider_sanitizer_objects $<TARGET_OBJECTS:outrider_sanitizer_objects>)
endif()

add_library(outrider_flags INTERFACE)
target_compile_features(outrider_flags INTERFACE cxx_std_20)
target_compile_definitions(outrider_flags INTERFACE "OUTRIDER_VERSION=\"${PROJECT_VERSION}\"")
target_compile_options(outrider_flags INTERFACE
  # Contracting a*b+c into one rounding would make results depend on what the compiler inlines.
  -ffp-contract=off
  # Nobody reads the floating-point exception flags; without this, GCC keeps float comparisons scalar.
  -fno-trapping-math
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers  # designated initialisers leave the rest at their defaults
  -Wcast-qual -Wunused -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # "literal" + std::string warns of overlaps of 2^63 bytes (GCC bug 105651, fixed in 14).
  target_compile_options(outrider_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND OUTRIDER_SANITIZE)
  # GCC's manual says so of -fsanitize: what it adds to the code makes false warnings. GCC 12 took
  # std::regex for reading an uninitialised std::function.
  target_compile_options(outrider_flags INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of GCC 12's library uses what that library has deprecated; clang warns of it in
  # the caller's code.
  target_compile_options(outrider_flags INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
  # Of a processor that says it has AVX10.1, clang 19 makes a combination for -march=native that it
  # warns of itself.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-Winvalid-feature-combination OUTRIDER_CLANG_WARNS_OF_FEATURES)
  if(OUTRIDER_CLANG_WARNS_OF_FEATURES)
    target_compile_options(outrider_flags INTERFACE -Wno-invalid-feature-combination)
  endif()
endif()
if(OUTRIDER_WERROR)
  target_compile_options(outrider_flags INTERFACE -Werror)
endif()
if(OUTRIDER_SANITIZE STREQUAL "address")
  target_compile_options(outrider_flags INTERFACE -fno-sanitize-recover=all)
endif()
if(OUTRIDER_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(outrider_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

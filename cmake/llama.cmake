# llama.cpp v0.5.0 as a subproject: static libraries, only what our targets link (EXCLUDE_FROM_ALL).
# The programs that we measure ourselves against come from the same tree with the same flags:
# cmake --build <folder> --target outrider_peers. GGML_* options are llama.cpp's own and pass
# through untouched (GGML_CUDA, GGML_METAL, GGML_VULKAN, GGML_BLAS, ...).
set(OUTRIDER_LLAMA_SOURCE_DIR "" CACHE PATH "Your own llama.cpp checkout; empty for the pinned one")
set(OUTRIDER_LLAMA_PACKAGE "" CACHE FILEPATH
    "The pinned npm package as a file, for machines without a network")
if(OUTRIDER_LLAMA AND (TARGET llama OR TARGET ggml))  # the project that adds this one has its own
  message(WARNING "llama.cpp: this build has one already, and targets of two cannot have one name. "
                  "Outrider's parts that need its own are left out: the command, the libraries and "
                  "all layers above outrider_llama_*. OUTRIDER_LLAMA=OFF says so without a warning")
  set(OUTRIDER_LLAMA OFF)
endif()
if(NOT OUTRIDER_LLAMA)
  message(STATUS "llama.cpp: off (OUTRIDER_LLAMA); layers that need it are left out")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/llama_source.cmake")

# Not forced, so that -DLLAMA_...=... on the command line wins.
function(outrider_llama_default name value)
  set(${name} ${value} CACHE BOOL "llama.cpp: chosen by Outrider")
endfunction()

outrider_llama_default(GGML_RPC ON)             # --workers
outrider_llama_default(LLAMA_BUILD_COMMON ON)   # chat templates, JSON schema to grammar
outrider_llama_default(LLAMA_BUILD_TESTS OFF)
outrider_llama_default(LLAMA_BUILD_TOOLS ON)    # the peers; not built by default
outrider_llama_default(LLAMA_BUILD_EXAMPLES ON)
outrider_llama_default(LLAMA_BUILD_SERVER ON)
outrider_llama_default(LLAMA_BUILD_APP OFF)
outrider_llama_default(LLAMA_BUILD_UI OFF)
outrider_llama_default(LLAMA_USE_PREBUILT_UI OFF)  # would download at build time
outrider_llama_default(LLAMA_TOOLS_INSTALL OFF)
outrider_llama_default(LLAMA_ALL_WARNINGS OFF)

outrider_llama_source(OUTRIDER_LLAMA_DIR)

# -hf downloads over HTTPS, which takes OpenSSL. Asked anew each time: it may have been installed
# since, so llama.cpp's option follows ours.
option(OUTRIDER_HTTPS "Models can be downloaded over HTTPS (-hf), where OpenSSL 3 is there" ON)
set(https OFF)
if(OUTRIDER_HTTPS)
  find_package(OpenSSL 3 QUIET)
  set(https ${OPENSSL_FOUND})
  if(NOT https)
    message(STATUS "Downloads (-hf): not over HTTPS, for want of OpenSSL 3; './dev setup' installs "
                   "it (libssl-dev), then configure again")
  endif()
endif()
set(LLAMA_OPENSSL ${https} CACHE BOOL "llama.cpp: follows OUTRIDER_HTTPS" FORCE)

# Their warnings are theirs. An unoptimised ggml is too slow to test anything with, so a debug
# build keeps it at -O2.
get_directory_property(saved_options COMPILE_OPTIONS)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-w>"
                    "$<$<AND:$<CONFIG:Debug>,$<COMPILE_LANGUAGE:C,CXX>>:-O2>")
set(saved_shared "${BUILD_SHARED_LIBS}")
set(BUILD_SHARED_LIBS OFF)
# Through a link in the build folder every path of a command line lies below the checkout, wherever
# the cache is, and ccache can make it relative.
set(OUTRIDER_LLAMA_LINK "${PROJECT_BINARY_DIR}/llama.cpp-source")
file(REMOVE "${OUTRIDER_LLAMA_LINK}")
file(CREATE_LINK "${OUTRIDER_LLAMA_DIR}" "${OUTRIDER_LLAMA_LINK}" SYMBOLIC RESULT linked)
if(NOT linked STREQUAL "0")  # a system without links
  set(OUTRIDER_LLAMA_LINK "${OUTRIDER_LLAMA_DIR}")
endif()
# A buffer of ours that llama.cpp overruns is to be found; its own undefined behaviour is not ours to
# mend (a worker reads 64-bit fields at odd multiples of 4, for one), and with both sanitizers its part
# of the build took 973 s of processor time, without them 395.
if(OUTRIDER_SANITIZE STREQUAL "address")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=undefined>")
endif()
outrider_add_llama("${OUTRIDER_LLAMA_LINK}")
set(BUILD_SHARED_LIBS "${saved_shared}")
set_directory_properties(PROPERTIES COMPILE_OPTIONS "${saved_options}")

# Its AMX code, where the build has AMX, gets intrinsics that say what they read.
include("${CMAKE_CURRENT_LIST_DIR}/check_amx.cmake")
if(TARGET ggml-cpu)  # GGML_CPU_ALL_VARIANTS has others, which keep the intrinsics as they are
set_source_files_properties("${OUTRIDER_LLAMA_LINK}/ggml/src/ggml-cpu/amx/mmq.cpp"
                            TARGET_DIRECTORY ggml-cpu PROPERTIES
                            COMPILE_OPTIONS "-include;${OUTRIDER_AMX_INTRINSICS}")
endif()

set(peers "")
foreach(peer llama-server llama-speculative llama-speculative-simple llama-lookup
             llama-lookup-create llama-lookup-merge llama-lookup-stats llama-bench llama-quantize)
  if(TARGET ${peer})
    list(APPEND peers ${peer})
  endif()
endforeach()
add_custom_target(outrider_peers DEPENDS ${peers})

# What costs in llama.cpp is parsing as well. Its own CMake puts only src/models together; here the
# rest of `llama` and `llama-common` follows, as far as names allow, with the flags that it has. For
# the pinned commit only, which we have tried.
outrider_llama_defect("${OUTRIDER_LLAMA_DIR}" defect)
if(OUTRIDER_UNITY AND NOT defect)
  outrider_unity_groups("${OUTRIDER_LLAMA_LINK}" 4000 llama src src/models)
  outrider_unity_groups("${OUTRIDER_LLAMA_LINK}" 4000 llama-common
                        common common/jinja common/parsers)
  # It specializes templates that others instantiate.
  set_source_files_properties("${OUTRIDER_LLAMA_LINK}/common/json.cpp" TARGET_DIRECTORY llama-common
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # What downloads, and what uses that, by itself: who needs another file of that unit would get
  # the HTTP client, and with it OpenSSL, into an app's process.
  foreach(file download preset)
    set_source_files_properties("${OUTRIDER_LLAMA_LINK}/common/${file}.cpp"
                                TARGET_DIRECTORY llama-common
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  outrider_unity(llama)
  outrider_unity(llama-common)
endif()

outrider_choose_threads()

# Which llama.cpp, and built how: in every result and in the key of cached measurements.
outrider_llama_commit("${OUTRIDER_LLAMA_DIR}" commit)
string(JOIN " " build "${CMAKE_CXX_COMPILER_ID}" "${CMAKE_CXX_COMPILER_VERSION}"
       "${CMAKE_BUILD_TYPE}" "${CMAKE_C_FLAGS}" "machine=${OUTRIDER_MACHINE}"
       "openmp=${GGML_OPENMP_ENABLED}" "own_threads=${OUTRIDER_OWN_THREADS}" "backends=${GGML_AVAILABLE_BACKENDS}"
       "sanitize=${OUTRIDER_SANITIZE}")
string(REPLACE ";" "," build "${build}")
target_compile_definitions(outrider_flags INTERFACE
                           "OUTRIDER_LLAMA_COMMIT=\"${commit}\""
                           "OUTRIDER_BUILD=\"${build}\"")

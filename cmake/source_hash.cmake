# outrider_hash_sources(TARGET FOLDERS...): a hash over our sources in these folders, and not in
# folders in them, becomes part of TARGET, which gets one more source: the function behind
# src/llama/exactness/source_hash.h. It is made when the target is built, and again when one of the
# sources changes, is added or goes. So what is kept of a build that computed otherwise is told by
# it, also where git knows nothing of the sources (a release's archive), and a commit that changes
# none of them leaves it as it was. Tests, which compute for nobody, are not hashed. This file is
# also the script that makes it.

function(outrider_hash_sources target)
  if(NOT TARGET ${target})
    return()
  endif()
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE folders)
  set(sources "${PROJECT_SOURCE_DIR}/cmake/instruction_sets.cmake"  # what they are compiled for
              "${PROJECT_SOURCE_DIR}/cmake/amx_intrinsics.h")
  foreach(folder IN LISTS folders)
    file(GLOB found CONFIGURE_DEPENDS "${folder}/*.cc" "${folder}/*.h")
    list(FILTER found EXCLUDE REGEX "_test\\.(cc|h)$")
    list(APPEND sources ${found})
  endforeach()
  set(output "${PROJECT_BINARY_DIR}/source_hash/source_hash.cc")
  # In a file, which is written where it changes: a source that is gone is newer than nothing.
  set(names "${PROJECT_BINARY_DIR}/source_hash/sources.txt")
  file(CONFIGURE OUTPUT "${names}" CONTENT "${sources}" @ONLY)
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  add_custom_command(OUTPUT "${output}"
                     COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DNAMES=${names}"
                             "-DOUTPUT=${output}" -P "${script}"
                     DEPENDS ${sources} "${names}" "${script}" VERBATIM
                     COMMENT "Hashing the sources that compute")
  target_sources(${target} PRIVATE "${output}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED NAMES)
  file(READ "${NAMES}" sources)
  list(SORT sources)
  set(all "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name "${ROOT}" "${source}")  # the same wherever the checkout is
    file(SHA256 "${source}" hash)
    string(APPEND all "${name} ${hash}\n")
  endforeach()
  string(SHA256 hash "${all}")
  string(SUBSTRING "${hash}" 0 16 hash)
  file(WRITE "${OUTPUT}" "// Made by cmake/source_hash.cmake.
#include \"llama/exactness/source_hash.h\"

std::string_view outrider::llama::source_hash() noexcept { return \"${hash}\"; }
")
endif()

# Several files compiled at once: what costs is not our lines but what they include. On 2 cores the
# 50 files of tools/ took 264 s of processor time one by one (each parses CLI11 and the JSON library
# for 3 to 4 s and generates their inline functions anew).
#
# cmake/unity_groups.py says which files go together. What is being edited (git status) is left out,
# so that an edit compiles one file; -DOUTRIDER_UNITY=OFF compiles every file of ours by itself, as
# `./dev lint` does. A file with compile options of its own (instruction sets, definitions) is never
# put together with others: CMake leaves it out.
option(OUTRIDER_UNITY "Compile files of ours that are not being edited several at once" ON)
find_package(Python3 COMPONENTS Interpreter QUIET)

# outrider_unity_groups(ROOT lines-per-unit WHERE folders...): for folders below ROOT. WHERE is empty
# or names a target in whose directory the files are known.
function(outrider_unity_groups root lines where)
  if(NOT Python3_FOUND)
    return()
  endif()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/unity_groups.py"
            "${root}" ${lines} ${ARGN}
    OUTPUT_VARIABLE groups RESULT_VARIABLE failed)
  if(failed)
    message(WARNING "Every file is compiled by itself: cmake/unity_groups.py failed (${failed})")
    return()
  endif()
  set(OUTRIDER_UNITY_WHERE "")
  if(where)
    set(OUTRIDER_UNITY_WHERE TARGET_DIRECTORY ${where})
  endif()
  cmake_language(EVAL CODE "${groups}")
endfunction()

# Groups are made once for all our folders; a target only says that it wants them.
function(outrider_unity target)
  if(OUTRIDER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

if(OUTRIDER_UNITY)
  file(GLOB outrider_layers LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/src/*"
       "${PROJECT_SOURCE_DIR}/src/*/*" "${PROJECT_SOURCE_DIR}/tools/*")
  list(FILTER outrider_layers EXCLUDE REGEX "\\.(h|cc)$")
  outrider_unity_groups("${PROJECT_SOURCE_DIR}" 2500 "" ${outrider_layers} tools testing tests)
endif()

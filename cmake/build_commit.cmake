# Which commit the command and the libraries were made of (src/base/build_commit.h).
#
# Git is asked in each build, in some milliseconds, since a commit changes no file of ours. One small
# file is made, and only when the answer has changed. It is compiled into what is installed and
# nowhere else: all other programs have the empty answer of src/base/build_commit.cc, so that a
# commit compiles one file and links five. This file is also the script that makes it.
#
# No commit is said where the sources are no checkout of their own: a release's archive, also one that
# was unpacked inside another project's checkout.

# outrider_says_commit(TARGET): for an executable or a shared library.
function(outrider_says_commit target)
  outrider_build_commit()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:outrider_commit>)
endfunction()

# The object library outrider_commit.
function(outrider_build_commit)
  if(TARGET outrider_commit)
    return()
  endif()
  find_package(Git QUIET)
  set(made "${PROJECT_BINARY_DIR}/commit/build_commit.cc")
  add_custom_target(outrider_look_for_commit
                    COMMAND "${CMAKE_COMMAND}" "-DGIT=${GIT_EXECUTABLE}"
                            "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${made}"
                            -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
                    BYPRODUCTS "${made}" COMMENT "Looking which commit this is" VERBATIM)
  add_library(outrider_commit OBJECT "${made}")
  add_dependencies(outrider_commit outrider_look_for_commit)
  target_include_directories(outrider_commit PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(outrider_commit PRIVATE outrider_flags)
endfunction()

# Sets RESULT to "a6c4c17ab012", to "a6c4c17ab012-modified" where what is compiled is not what that commit has
# (new files count), or to nothing. How long it is and what counts is said to git, so that nobody's
# configuration of it decides.
function(outrider_commit_of source git result)
  set(${result} "" PARENT_SCOPE)
  if(NOT git)
    return()
  endif()
  # A hook of git's that builds has these, about whatever it is a hook of.
  foreach(variable GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX)
    unset(ENV{${variable}})
  endforeach()
  set(git "${git}" --no-optional-locks -C "${source}")
  execute_process(COMMAND ${git} rev-parse --show-toplevel --short=12 HEAD OUTPUT_VARIABLE lines
                  ERROR_VARIABLE why RESULT_VARIABLE failed)
  if(failed OR NOT lines MATCHES "^(.*)\n([0-9a-f]+)\n$")
    if(EXISTS "${source}/.git")  # else it is somebody's archive
      message(WARNING "'${source}' is a checkout, but git does not say of which commit, so the "
                      "command and the libraries won't either: ${why}")
    endif()
    return()
  endif()
  set(commit "${CMAKE_MATCH_2}")
  file(REAL_PATH "${CMAKE_MATCH_1}" top)
  file(REAL_PATH "${source}" source)
  if(NOT top STREQUAL source)
    return()
  endif()
  execute_process(COMMAND ${git} status --porcelain --untracked-files=normal --
                          CMakeLists.txt cmake include src tools
                  OUTPUT_VARIABLE changes ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR changes)
    string(APPEND commit "-modified")
  endif()
  set(${result} "${commit}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED OUTPUT)
  cmake_minimum_required(VERSION 3.25)
  outrider_commit_of("${SOURCE}" "${GIT}" commit)
  file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "// Made by cmake/build_commit.cmake.
#include \"base/build_commit.h\"

std::string_view outrider::build_commit() noexcept { return \"@commit@\"; }
")
endif()

# outrider_llama_source(DIR): sets DIR to a llama.cpp source tree, in this order:
#   1. OUTRIDER_LLAMA_SOURCE_DIR, one's own checkout, whatever it is;
#   2. <cache>/llama.cpp-<commit>, if it is at the pinned commit and unchanged;
#   3. the pinned npm package, from OUTRIDER_LLAMA_PACKAGE (a file) or from npm, checked against its
#      hash, its git bundle cloned, its commit checked, and renamed into place as (2).
# <cache> is $OUTRIDER_CACHE, $XDG_CACHE_HOME/outrider or ~/.cache/outrider. Several configures at
# once are safe: a lock makes one of them fetch, each works in a folder of its own, and the rename
# is atomic.
set(OUTRIDER_LLAMA_COMMIT de3ff815ea7d559ee917f063901b8986f038abc6)
set(OUTRIDER_LLAMA_NPM node-llama-cpp@3.22.1)
# SHA-512 of that package, in hex. The registry writes the same hash as "integrity":
# sha512-bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==
set(OUTRIDER_LLAMA_SHA512 6e5b488a9b9699cd76dc7eed30880318a4ac4ab866865418795502e3c5d38d55bb5c624988927209d95333343f2e25a83e4183a5c2f816f883a60c3ba9f4e20f)

function(outrider_cache_dir result)
  if(NOT "$ENV{OUTRIDER_CACHE}" STREQUAL "")
    set(dir "$ENV{OUTRIDER_CACHE}")
  elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(dir "$ENV{XDG_CACHE_HOME}/outrider")
  elseif(NOT "$ENV{HOME}" STREQUAL "")
    set(dir "$ENV{HOME}/.cache/outrider")
  else()
    message(FATAL_ERROR "No place for llama.cpp's source: set OUTRIDER_CACHE to a folder")
  endif()
  file(REAL_PATH "${dir}" dir BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set(${result} "${dir}" PARENT_SCOPE)
endfunction()

# Runs git on a folder, without the variables that a calling git hook would have set.
# Sets <prefix>_failed, <prefix>_output, <prefix>_error.
function(outrider_git prefix)
  find_program(OUTRIDER_GIT git)
  mark_as_advanced(OUTRIDER_GIT)
  if(NOT OUTRIDER_GIT)
    message(FATAL_ERROR "llama.cpp arrives as a git bundle, and there is no git: install git, or "
                        "give -DOUTRIDER_LLAMA_SOURCE_DIR=<llama.cpp folder>")
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
            "${OUTRIDER_GIT}" ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE error
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  foreach(name failed output error)
    set(${prefix}_${name} "${${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Adds FOLDER as the subproject llama.cpp. What it finds (CUDA::cudart, Vulkan::Vulkan) is known to us,
# too: who links a static library of ours has to be told of it (c_library.cmake).
macro(outrider_add_llama folder)
  set(saved_global "${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL}")
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  add_subdirectory("${folder}" llama.cpp EXCLUDE_FROM_ALL SYSTEM)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL "${saved_global}")
endmacro()

# Sets HEAD to the commit of the checkout DIR and WHY to nothing, or the other way round. A folder of
# another checkout is none, though git says that one's commit.
function(outrider_llama_head dir head why)
  outrider_git(said -C "${dir}" rev-parse --show-toplevel HEAD)
  set(${head} "" PARENT_SCOPE)
  if(said_failed OR NOT said_output MATCHES "^(.+)\n([0-9a-f]+)$")
    set(${why} "it is no git checkout (${said_error})" PARENT_SCOPE)
    return()
  endif()
  set(commit "${CMAKE_MATCH_2}")
  file(REAL_PATH "${CMAKE_MATCH_1}" top)
  file(REAL_PATH "${dir}" dir)
  if(NOT top STREQUAL dir)
    set(${why} "it is no git checkout (but a folder of that in ${top})" PARENT_SCOPE)
    return()
  endif()
  set(${head} "${commit}" PARENT_SCOPE)
  set(${why} "" PARENT_SCOPE)
endfunction()

# Sets RESULT to the commit of the source in DIR: "de3ff81...", "de3ff81...-changed" or "unknown".
function(outrider_llama_commit dir result)
  outrider_llama_head("${dir}" commit why)
  outrider_git(status --no-optional-locks -C "${dir}" status --porcelain)
  if(why)
    set(commit unknown)
  elseif(NOT status_output STREQUAL "")
    string(APPEND commit "-changed")
  endif()
  set(${result} "${commit}" PARENT_SCOPE)
endfunction()

# Sets RESULT to "" if DIR is a clean checkout of the pinned commit, else to what is wrong with it.
function(outrider_llama_defect dir result)
  outrider_llama_head("${dir}" head why)
  if(why)
    set(${result} "${why}" PARENT_SCOPE)
    return()
  elseif(NOT head STREQUAL OUTRIDER_LLAMA_COMMIT)
    set(${result} "it is at commit ${head}" PARENT_SCOPE)
    return()
  endif()
  # Without the optional lock git leaves the index as it is; llama.cpp's CMake watches that file.
  outrider_git(status --no-optional-locks -C "${dir}" status --porcelain --untracked-files=all)
  if(status_failed)
    set(${result} "git status fails (${status_error})" PARENT_SCOPE)
  elseif(NOT status_output STREQUAL "")
    string(REGEX REPLACE "\n.*" " ..." first "${status_output}")
    set(${result} "it has been changed (${first})" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# The package as a file that has the pinned hash; from the user, or by npm into SCRATCH.
function(outrider_llama_package scratch result)
  set(package "${OUTRIDER_LLAMA_PACKAGE}")
  if(package STREQUAL "")
    set(package "$ENV{OUTRIDER_LLAMA_PACKAGE}")
  endif()
  if(NOT package STREQUAL "")
    if(NOT EXISTS "${package}")
      outrider_llama_fatal("there is no file '${package}' (OUTRIDER_LLAMA_PACKAGE)")
    endif()
  else()
    find_program(OUTRIDER_NPM npm)
    mark_as_advanced(OUTRIDER_NPM)
    if(NOT OUTRIDER_NPM)
      outrider_llama_fatal("npm is not installed")
    endif()
    message(STATUS "llama.cpp: fetching ${OUTRIDER_LLAMA_NPM} with npm (36 MB, once)")
    execute_process(
      COMMAND "${OUTRIDER_NPM}" pack --ignore-scripts --loglevel=error --fetch-retries=2
              --fetch-retry-mintimeout=2000 --fetch-retry-maxtimeout=10000 ${OUTRIDER_LLAMA_NPM}
      WORKING_DIRECTORY "${scratch}"
      RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE error)
    file(GLOB package "${scratch}/*.tgz")
    if(failed OR NOT package)
      # npm says what went wrong first, then where in its own code.
      string(REGEX MATCHALL "npm (error|ERR!) (code|errno|[0-9]|FetchError|request)[^\n]*" said
             "${error}")
      if(said)
        list(JOIN said "\n  " error)
      endif()
      string(STRIP "${error}" error)
      outrider_llama_fatal("'npm pack ${OUTRIDER_LLAMA_NPM}' failed (is there a network?):\n  ${error}")
    endif()
  endif()
  file(SHA512 "${package}" actual)
  if(NOT actual STREQUAL OUTRIDER_LLAMA_SHA512)
    outrider_llama_fatal("'${package}' is not the package that we pinned, ${OUTRIDER_LLAMA_NPM}:\n"
                         "  its SHA-512 is ${actual}\n  and should be  ${OUTRIDER_LLAMA_SHA512}")
  endif()
  set(${result} "${package}" PARENT_SCOPE)
endfunction()

# Every failure to get the source names the three other ways to give it.
function(outrider_llama_fatal)
  string(CONCAT text ${ARGN})
  if(outrider_scratch)
    file(REMOVE_RECURSE "${outrider_scratch}")
  endif()
  message(FATAL_ERROR "llama.cpp: ${text}\n"
    "Other ways to give it: OUTRIDER_LLAMA_PACKAGE=<the .tgz that 'npm pack ${OUTRIDER_LLAMA_NPM}' "
    "makes elsewhere>, -DOUTRIDER_LLAMA_SOURCE_DIR=<a llama.cpp checkout>, or build without it: "
    "-DOUTRIDER_LLAMA=OFF")
endfunction()

function(outrider_llama_fetch cache target)
  if(locked STREQUAL "0")  # nobody else is at it: what an interrupted configure left can go
    file(GLOB leftovers "${cache}/fetch-*")
    if(leftovers)
      file(REMOVE_RECURSE ${leftovers})
    endif()
  endif()
  string(RANDOM LENGTH 12 suffix)
  set(outrider_scratch "${cache}/fetch-${suffix}")
  file(MAKE_DIRECTORY "${outrider_scratch}")
  outrider_llama_package("${outrider_scratch}" package)

  set(bundle package/llama/gitRelease.bundle)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E tar xf "${package}" ${bundle}
                  WORKING_DIRECTORY "${outrider_scratch}" RESULT_VARIABLE failed ERROR_VARIABLE error)
  if(failed OR NOT EXISTS "${outrider_scratch}/${bundle}")
    outrider_llama_fatal("'${package}' holds no ${bundle}: ${error}")
  endif()
  set(checkout "${outrider_scratch}/llama.cpp")
  outrider_git(clone -c advice.detachedHead=false -c core.autocrlf=false
               clone --quiet "${outrider_scratch}/${bundle}" "${checkout}")
  if(clone_failed)
    outrider_llama_fatal("the git bundle cannot be cloned: ${clone_error}")
  endif()
  outrider_git(remote -C "${checkout}" remote remove origin)
  outrider_llama_defect("${checkout}" defect)
  if(defect)
    outrider_llama_fatal("the bundle's checkout is not commit ${OUTRIDER_LLAMA_COMMIT}: ${defect}")
  endif()

  if(EXISTS "${target}")
    file(RENAME "${target}" "${cache}/replaced-${suffix}" RESULT ignored)
  endif()
  file(RENAME "${checkout}" "${target}" RESULT renamed)
  if(NOT renamed STREQUAL "0")  # somebody else was quicker, without our lock
    outrider_llama_defect("${target}" defect)
    if(defect)
      outrider_llama_fatal("cannot move the source to '${target}': ${renamed}")
    endif()
  endif()
  file(REMOVE_RECURSE "${outrider_scratch}")
endfunction()

function(outrider_llama_source result)
  if(OUTRIDER_LLAMA_SOURCE_DIR)
    if(NOT EXISTS "${OUTRIDER_LLAMA_SOURCE_DIR}/include/llama.h")
      message(FATAL_ERROR "OUTRIDER_LLAMA_SOURCE_DIR: '${OUTRIDER_LLAMA_SOURCE_DIR}' is not a "
                          "llama.cpp source folder (no include/llama.h)")
    endif()
    outrider_llama_defect("${OUTRIDER_LLAMA_SOURCE_DIR}" defect)
    if(defect)
      message(STATUS "llama.cpp: ${OUTRIDER_LLAMA_SOURCE_DIR}, your own: ${defect}; "
                     "we test with ${OUTRIDER_LLAMA_COMMIT}")
    else()
      message(STATUS "llama.cpp: ${OUTRIDER_LLAMA_SOURCE_DIR}, your own, at the pinned commit "
                     "${OUTRIDER_LLAMA_COMMIT}")
    endif()
    set(${result} "${OUTRIDER_LLAMA_SOURCE_DIR}" PARENT_SCOPE)
    return()
  endif()

  outrider_cache_dir(cache)
  set(target "${cache}/llama.cpp-${OUTRIDER_LLAMA_COMMIT}")
  file(MAKE_DIRECTORY "${cache}")
  file(LOCK "${cache}/llama.cpp.lock" GUARD FUNCTION TIMEOUT 900 RESULT_VARIABLE locked)
  set(defect "it is not there")
  if(EXISTS "${target}")
    outrider_llama_defect("${target}" defect)
    if(defect)
      message(WARNING "llama.cpp: '${target}' is not used: ${defect}. It is fetched again; the old "
                      "folder is kept beside it as replaced-*")
    endif()
  endif()
  if(defect)
    outrider_llama_fetch("${cache}" "${target}")
  endif()
  message(STATUS "llama.cpp: ${target}")
  set(${result} "${target}" PARENT_SCOPE)
endfunction()

# Writes OUTRIDER_NOTICES: the licences of all that is compiled into our libraries and the command,
# whose notices must go wherever those go. Run when something is installed (outrider_notices in
# packaging.cmake), with LLAMA, the source that was built, and OURS, packaging/licences.
#
# Of llama.cpp also the licences of what it carries, and the copyright lines that only its files have.
# A licence that should be there and is not ends the installation: without it nothing may be passed on.

# Appends NAME and the text of FILE.
function(outrider_notice name file)
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "cannot write the notices of third parties: the licence of ${name} is not at "
                        "'${file}'; where it is now goes into cmake/write_notices.cmake")
  endif()
  file(READ "${file}" text)
  string(STRIP "${text}" text)
  string(REPEAT "=" 80 line)
  file(APPEND "${OUTRIDER_NOTICES}" "\n${line}\n${name}\n${line}\n${text}\n")
endfunction()

# Appends what the lines of FILE say of who has the copyright of parts of it.
function(outrider_notice_lines file)
  set(text "")
  if(EXISTS "${file}")
    set(says "(SPDX-FileCopyrightText:|MIT licensed\\.) ")
    file(STRINGS "${file}" lines REGEX "${says}" ENCODING UTF-8)
    list(TRANSFORM lines REPLACE "^.*${says}" "")
    list(REMOVE_DUPLICATES lines)
    list(JOIN lines "\n" text)
  endif()
  if(NOT text STREQUAL "")
    cmake_path(GET file FILENAME name)
    file(APPEND "${OUTRIDER_NOTICES}" "\nIn ${name}:\n${text}\n")
  endif()
endfunction()

# The comment that FILE, compiled into ggml, begins with is its licence.
function(outrider_notice_head name file)
  if(EXISTS "${file}")
    file(READ "${file}" text)
    string(REGEX MATCH "^(//[^\n]*\n)+" head "${text}")
    string(REGEX REPLACE "(^|\n)// ?" "\\1" head "${head}")
    file(WRITE "${OUTRIDER_NOTICES}.head" "${head}")
  endif()
  outrider_notice("${name}" "${OUTRIDER_NOTICES}.head")
  file(REMOVE "${OUTRIDER_NOTICES}.head")
endfunction()

file(WRITE "${OUTRIDER_NOTICES}"
     "Outrider holds code of others. What each of them asks to be said with it follows.\n")
outrider_notice("llama.cpp and ggml" "${LLAMA}/LICENSE")
outrider_notice_lines("${LLAMA}/ggml/src/ggml-cpu/ops.cpp")
outrider_notice_head("tinyBLAS, in ggml" "${LLAMA}/ggml/src/ggml-cpu/llamafile/sgemm.cpp")
outrider_notice("nlohmann/json, in llama.cpp" "${LLAMA}/licenses/LICENSE-jsonhpp")
outrider_notice_lines("${LLAMA}/vendor/nlohmann/json.hpp")
outrider_notice("cpp-httplib, in llama.cpp" "${LLAMA}/vendor/cpp-httplib/LICENSE")
# What else it carries, whether or not all of it is linked.
file(GLOB files "${LLAMA}/licenses/*" "${LLAMA}/vendor/*/LICENSE*" "${LLAMA}/vendor/*/*/LICENSE*")
list(FILTER files EXCLUDE REGEX "/(LICENSE-jsonhpp|cpp-httplib/LICENSE)$")
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${LLAMA}" OUTPUT_VARIABLE name)
  outrider_notice("llama.cpp's ${name}" "${file}")
endforeach()
outrider_notice("CLI11" "${OURS}/CLI11")
outrider_notice("toml++" "${OURS}/toml++")

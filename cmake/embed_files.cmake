# outrider_embed(TARGET FOLDER): the files of FOLDER, and not of folders in it, become part of TARGET,
# which gets one more source: a table of name, content type and bytes behind src/http/page_files.h.
# It is made when the target is built, again when a file changes, and by CMake alone: this file is
# also the script that makes it.
#
# Letters and digits stay as they are; all other bytes become octal escapes of three digits, which
# (unlike \x) no digit behind them can prolong. CMake's own marks never appear in what it works on.

function(outrider_embed target folder)
  get_filename_component(folder "${folder}" ABSOLUTE)
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*")
  get_filename_component(name "${folder}" NAME)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}_${name}.cc")
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  add_custom_command(OUTPUT "${output}"
                     COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DOUTPUT=${output}" -P "${script}"
                     DEPENDS ${files} "${script}" VERBATIM
                     COMMENT "Embedding ${name}")
  target_sources(${target} PRIVATE "${output}")
  # The table must not be put together with other files: its names are its own.
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The content type of a file, by the end of its name.
function(outrider_content_type file result)
  set(types .html text/html .css text/css .js text/javascript .svg image/svg+xml .png image/png
      .json application/json .txt text/plain)
  get_filename_component(ending "${file}" LAST_EXT)
  list(FIND types "${ending}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${file}: cmake/embed_files.cmake knows no content type of '${ending}'")
  endif()
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  if(type MATCHES "^text/")
    string(APPEND type "; charset=utf-8")
  endif()
  set(${result} "${type}" PARENT_SCOPE)
endfunction()

# The bytes of a file as a string literal, a line of it for each of the file's.
function(outrider_literal file result)
  file(READ "${file}" hex HEX)
  # Pairs of digits, so that no match begins in the middle of a byte.
  string(REGEX REPLACE "(..)" "\\1 " hex "${hex}")
  foreach(high RANGE 0 15)
    foreach(low RANGE 0 15)
      math(EXPR byte "${high} * 16 + ${low}")
      math(EXPR pair "${byte}" OUTPUT_FORMAT HEXADECIMAL)
      string(REGEX REPLACE "^0x" "" pair "${pair}")
      if(byte LESS 16)
        string(PREPEND pair 0)
      endif()
      math(EXPR octal "${byte} / 64 * 100 + ${byte} / 8 % 8 * 10 + ${byte} % 8")
      if(octal LESS 10)
        string(PREPEND octal 0)
      endif()
      if(octal LESS 100)
        string(PREPEND octal 0)
      endif()
      set(text "\\${octal}")
      if((byte GREATER 47 AND byte LESS 58) OR (byte GREATER 64 AND byte LESS 91) OR
         (byte GREATER 96 AND byte LESS 123) OR byte EQUAL 32)
        string(ASCII ${byte} text)
      endif()
      if(byte EQUAL 32)
        set(text "_")  # for a moment: spaces part the pairs
      endif()
      if(byte EQUAL 10)
        set(text "\\012\"\n\"")
      endif()
      string(REPLACE "${pair} " "<${text}>" hex "${hex}")
    endforeach()
  endforeach()
  string(REPLACE "<" "" hex "${hex}")
  string(REPLACE ">" "" hex "${hex}")
  string(REPLACE "_" " " hex "${hex}")
  set(${result} "\"${hex}\"" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED FOLDER)
  file(GLOB files "${FOLDER}/*")
  list(SORT files)
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME)
    file(SIZE "${file}" size)
    outrider_content_type("${file}" type)
    outrider_literal("${file}" literal)
    string(APPEND rows "    {\"${name}\", \"${type}\",\n     {${literal},\n      ${size}}},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "// Made by cmake/embed_files.cmake.
#include \"http/page_files.h\"

namespace outrider::http {
namespace {
constexpr PageFile kFiles[] = {
${rows}};
}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace outrider::http
")
endif()

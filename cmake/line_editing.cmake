# Editing of lines in `outrider chat`: libedit (Debian: libedit-dev), where it is installed. Without
# it the command is complete, and the terminal's own cooked mode edits its lines.
option(OUTRIDER_LINE_EDITING "Edit the lines of 'outrider chat' with libedit, where it is there" ON)

function(outrider_line_editing target)
  if(NOT TARGET ${target})
    return()
  endif()
  find_path(OUTRIDER_LIBEDIT_INCLUDE_DIR histedit.h)
  find_library(OUTRIDER_LIBEDIT_LIBRARY edit)
  mark_as_advanced(OUTRIDER_LIBEDIT_INCLUDE_DIR OUTRIDER_LIBEDIT_LIBRARY)
  if(OUTRIDER_LINE_EDITING AND OUTRIDER_LIBEDIT_INCLUDE_DIR AND OUTRIDER_LIBEDIT_LIBRARY)
    set_source_files_properties("${PROJECT_SOURCE_DIR}/tools/chat/line_editor.cc" PROPERTIES
                                COMPILE_DEFINITIONS OUTRIDER_LIBEDIT)
    target_include_directories(${target} SYSTEM PRIVATE "${OUTRIDER_LIBEDIT_INCLUDE_DIR}")
    target_link_libraries(${target} PRIVATE "${OUTRIDER_LIBEDIT_LIBRARY}")
    message(STATUS "Line editing: libedit")
  else()
    message(STATUS "Line editing: the terminal's own (libedit-dev is not used)")
  endif()
endfunction()

# The C libraries: for each a shared and a static one, a CMake package, a pkg-config file and the
# installed header. Out of them come the functions of the C header and nothing else:
#  - shared: all objects are compiled with hidden visibility, and a version script (where the linker
#    knows them) names what is left;
#  - static: one archive that holds everything, llama.cpp included, as one object whose other names
#    are local. An app may have a llama.cpp of its own beside it. That takes GNU ld and objcopy;
#    elsewhere (macOS, Windows) only the shared library is made.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What a program that was linked with one version may be run with, by semantic versioning: before 1.0
# a minor version may change anything. The library's name (and with it Debian's shlibs, packaging.cmake)
# and the CMake package say the same.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(OUTRIDER_SOVERSION 0.${PROJECT_VERSION_MINOR})
  math(EXPR next "${PROJECT_VERSION_MINOR} + 1")
  set(OUTRIDER_NEXT_SOVERSION 0.${next})
  set(OUTRIDER_COMPATIBILITY SameMinorVersion)
else()
  set(OUTRIDER_SOVERSION ${PROJECT_VERSION_MAJOR})
  math(EXPR OUTRIDER_NEXT_SOVERSION "${PROJECT_VERSION_MAJOR} + 1")
  set(OUTRIDER_COMPATIBILITY SameMajorVersion)
endif()

# The file of an imported library, or nothing.
function(outrider_imported_file target result)
  set(properties IMPORTED_LOCATION)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  if(configurations)
    list(TRANSFORM configurations PREPEND IMPORTED_LOCATION_)
    list(APPEND properties ${configurations})
  endif()
  set(${result} "" PARENT_SCOPE)
  foreach(property IN LISTS properties)
    get_target_property(file ${target} ${property})
    if(file)
      set(${result} "${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Everything that TARGET is linked with: static libraries of this build in ARCHIVES, what the system
# has (-lm, OpenMP, CUDA's libraries, ...) in SYSTEM as flags for a linker. UNKNOWN: names of imported
# targets that are not seen from here, so that nobody can say what they are.
function(outrider_link_closure target archives system unknown)
  set(todo ${target})
  set(seen "")
  set(found "")
  set(flags "")
  set(missing "")
  while(todo)
    list(POP_FRONT todo item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item STREQUAL "" OR item IN_LIST seen OR item MATCHES "\\$<")
      continue()
    endif()
    list(APPEND seen "${item}")
    # Not a library: "::@(...)" says in which folder the next ones were named. Threads are always
    # linked; OpenSSL is for downloads, which are not in the libraries.
    if(item MATCHES "^(::@|Threads::|OpenSSL::)")
      continue()
    elseif(item MATCHES "^OpenMP::" OR NOT TARGET "${item}")
      if(item MATCHES "::" AND NOT item MATCHES "^OpenMP::")
        list(APPEND missing "${item}")
      else()
        list(APPEND flags "${item}")
      endif()
      continue()
    endif()
    get_target_property(aliased ${item} ALIASED_TARGET)
    if(aliased)
      list(APPEND todo ${aliased})
      continue()
    endif()
    get_target_property(type ${item} TYPE)
    get_target_property(imported ${item} IMPORTED)
    if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
      list(APPEND found ${item})
    elseif(imported AND NOT type STREQUAL "INTERFACE_LIBRARY")
      outrider_imported_file(${item} file)
      if(file)
        list(APPEND flags "${file}")
      else()
        list(APPEND missing "${item}")
      endif()
    endif()
    foreach(property INTERFACE_LINK_LIBRARIES LINK_LIBRARIES)
      if(property STREQUAL "LINK_LIBRARIES" AND (type STREQUAL "INTERFACE_LIBRARY" OR imported))
        continue()
      endif()
      get_target_property(links ${item} ${property})
      if(links)
        list(APPEND todo ${links})
      endif()
    endforeach()
  endwhile()
  set(${archives} "${found}" PARENT_SCOPE)
  set(result "-lstdc++")
  foreach(flag IN LISTS flags)
    if(flag MATCHES "^OpenMP::")
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        list(APPEND result -lgomp)
      else()
        list(APPEND result -lomp)
      endif()
    elseif(flag MATCHES "^-")
      list(APPEND result "${flag}")
    elseif(flag MATCHES "^(.*)/lib([^/]*)\\.(so|a)$" AND
           CMAKE_MATCH_1 IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND result "-l${CMAKE_MATCH_2}")
    elseif(NOT flag MATCHES "/")
      list(APPEND result "-l${flag}")
    else()
      list(APPEND result "${flag}")
    endif()
  endforeach()
  list(APPEND result -lm -lpthread -ldl)
  list(REMOVE_DUPLICATES result)
  set(${system} "${result}" PARENT_SCOPE)
  set(${unknown} "${missing}" PARENT_SCOPE)
endfunction()

# outrider_c_library(NAME LAYER layer HEADER header DESCRIPTION text SYMBOLS names...)
# makes the targets NAME_shared and NAME_static from the layer's objects. Wildcards may be used in
# SYMBOLS.
function(outrider_c_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LAYER;HEADER;DESCRIPTION" "SYMBOLS")
  set(layer outrider_${arg_LAYER})
  if(NOT TARGET ${layer})
    return()
  endif()
  target_include_directories(${layer} PUBLIC "${PROJECT_SOURCE_DIR}/include")
  set(made "${PROJECT_BINARY_DIR}/${name}")

  add_library(${name}_shared SHARED $<TARGET_OBJECTS:${layer}>)
  target_include_directories(${name}_shared PUBLIC
                             "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
                             "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${name}_shared PRIVATE ${layer} outrider_flags)
  outrider_says_commit(${name}_shared)
  set_target_properties(${name}_shared PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${name}
                        LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                        SOVERSION ${OUTRIDER_SOVERSION})
  if(UNIX AND NOT APPLE)
    string(JOIN "\n    " lines ${arg_SYMBOLS})
    string(REPLACE "\n" ";\n" lines "${lines}")
    file(CONFIGURE OUTPUT "${made}.map" @ONLY
         CONTENT "{\n  global:\n    ${lines};\n  local:\n    *;\n};\n")
    # as-needed: llama-common names OpenSSL for its downloads, which are not in here.
    target_link_options(${name}_shared PRIVATE "LINKER:--version-script=${made}.map"
                        "LINKER:--as-needed")
    set_target_properties(${name}_shared PROPERTIES LINK_DEPENDS "${made}.map")
  endif()
  install(TARGETS ${name}_shared EXPORT ${name}-targets)
  install(EXPORT ${name}-targets NAMESPACE ${name}::
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/${name}")
  install(FILES "${PROJECT_SOURCE_DIR}/include/${arg_HEADER}" TYPE INCLUDE)

  outrider_link_closure(${layer} archives system unknown)
  outrider_static_c_library(${name} "${arg_SYMBOLS}" "${archives}" "${unknown}")
  string(REPLACE ";" " " private_libraries "${system}")
  set(description "${arg_DESCRIPTION}")
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/package.pc.in" "${made}.pc" @ONLY)
  install(FILES "${made}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/package-config.cmake.in"
                                "${made}-config.cmake"
                                INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/${name}"
                                PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
  write_basic_package_version_file("${made}-config-version.cmake"
                                   COMPATIBILITY ${OUTRIDER_COMPATIBILITY})
  install(FILES "${made}-config.cmake" "${made}-config-version.cmake"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/${name}")
endfunction()

# The one archive. Sections that several objects share (COMDAT) are made plain ones first: a linker
# that finds the same inline function in the app would otherwise throw ours away, local names and
# all.
#
# None is made where it is UNKNOWN what a program has to be linked with beside it.
function(outrider_static_c_library name symbols archives unknown)
  find_program(OUTRIDER_LD ld)
  mark_as_advanced(OUTRIDER_LD)
  if(NOT UNIX OR APPLE OR NOT OUTRIDER_LD OR NOT CMAKE_OBJCOPY OR OUTRIDER_SANITIZE)
    return()
  endif()
  if(unknown)
    string(REPLACE ";" ", " unknown "${unknown}")
    message(WARNING "lib${name}.a is not made: what llama.cpp is linked with is not known here: "
                    "${unknown}. The shared library is made.")
    return()
  endif()
  set(archive "${PROJECT_BINARY_DIR}/lib${name}.a")
  set(object "${PROJECT_BINARY_DIR}/${name}_all.o")
  list(GET archives 0 first)  # the layer itself
  set(files ${archives})
  list(TRANSFORM files REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  list(TRANSFORM symbols PREPEND "--keep-global-symbol=" OUTPUT_VARIABLE kept)
  add_custom_command(
    OUTPUT "${archive}"
    COMMAND "${OUTRIDER_LD}" -r --force-group-allocation ${OUTRIDER_WRAP_OPTIONS} -o "${object}"
            $<TARGET_OBJECTS:outrider_commit>
            --whole-archive "$<TARGET_FILE:${first}>" --no-whole-archive
            --start-group ${files} --end-group
    COMMAND "${CMAKE_OBJCOPY}" --wildcard ${kept} "${object}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${archive}"
    COMMAND "${CMAKE_AR}" qcs "${archive}" "${object}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${object}"
    DEPENDS ${archives} $<TARGET_OBJECTS:outrider_commit> COMMENT "Making lib${name}.a" VERBATIM)
  add_custom_target(${name}_static ALL DEPENDS "${archive}")
  install(FILES "${archive}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endfunction()

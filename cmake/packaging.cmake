# What packages hold beside the libraries (c_library.cmake): the manual page and the completions, which
# the command prints of its own options; licences; the parts of a Python wheel; the .deb.
#
# Components: `python` is the module's part of a wheel (pyproject.toml), `system` what belongs to one
# place of a system (unit, settings). Neither is part of a plain `cmake --install`, which can go
# anywhere and be moved.
function(outrider_packaging)
  if(TARGET outrider_shared)
    outrider_notices()
  endif()
  if(NOT TARGET outrider OR NOT TARGET outrider_shared)
    return()
  endif()
  # The command itself writes them, which another project's build has no need of.
  if(PROJECT_IS_TOP_LEVEL AND NOT OUTRIDER_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    outrider_generated_pages()
  endif()

  # One file instead of a library and its links, which a wheel cannot hold.
  install(FILES "$<TARGET_FILE:outrider_shared>" DESTINATION outrider COMPONENT python
          RENAME "liboutrider${CMAKE_SHARED_LIBRARY_SUFFIX}" EXCLUDE_FROM_ALL)
  install(TARGETS outrider RUNTIME DESTINATION outrider/bin COMPONENT python EXCLUDE_FROM_ALL)

  set(packaging "${PROJECT_SOURCE_DIR}/packaging")
  install(FILES "${packaging}/outrider.service" DESTINATION lib/systemd/system COMPONENT system
          EXCLUDE_FROM_ALL)
  install(FILES "${packaging}/outrider.toml" DESTINATION /etc/outrider COMPONENT system
          EXCLUDE_FROM_ALL)
  outrider_deb()
endfunction()

# outrider.1 and the completions, where distributions keep them.
function(outrider_generated_pages)
  set(folder "${PROJECT_BINARY_DIR}/pages")
  set(made "")
  foreach(page "man:outrider.1" "completion bash:outrider.bash" "completion zsh:_outrider"
          "completion fish:outrider.fish")
    string(REGEX MATCH "^(.*):(.*)$" matched "${page}")
    string(REPLACE " " ";" arguments "${CMAKE_MATCH_1}")
    set(file "${folder}/${CMAKE_MATCH_2}")
    # No settings of whoever builds.
    add_custom_command(OUTPUT "${file}"
                       COMMAND "${CMAKE_COMMAND}" -E env --unset=OUTRIDER_CONFIG
                               "$<TARGET_FILE:outrider>" ${arguments} > "${file}"
                       DEPENDS outrider VERBATIM)
    list(APPEND made "${file}")
  endforeach()
  file(MAKE_DIRECTORY "${folder}")
  add_custom_target(outrider_pages ALL DEPENDS ${made})
  install(FILES "${folder}/outrider.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${folder}/outrider.bash" RENAME outrider
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${folder}/_outrider" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${folder}/outrider.fish"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endfunction()

# Our licence, and THIRD_PARTY: those of all that is compiled in. Written when it is installed, since
# who only builds needs neither. Debian wants both in one file.
function(outrider_notices)
  set(notices "${PROJECT_BINARY_DIR}/THIRD_PARTY")
  set(copyright "${PROJECT_BINARY_DIR}/copyright")
  set(write "
    set(OUTRIDER_NOTICES \"${notices}\")
    set(LLAMA \"${OUTRIDER_LLAMA_DIR}\")
    set(OURS \"${PROJECT_SOURCE_DIR}/packaging/licences\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/write_notices.cmake\")")
  install(CODE "${write}
    file(READ \"${PROJECT_SOURCE_DIR}/LICENSE\" ours)
    file(READ \"${notices}\" others)
    file(WRITE \"${copyright}\" \"\${ours}\\n\${others}\")")
  install(FILES "${notices}" "${copyright}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
  if(SKBUILD)  # a wheel; beside LICENSE in its dist-info
    install(CODE "${write}" COMPONENT python EXCLUDE_FROM_ALL)
    install(FILES "${notices}" DESTINATION "${SKBUILD_METADATA_DIR}/licenses" COMPONENT python
            EXCLUDE_FROM_ALL)
  endif()
endfunction()

# Which packages a program that links the libraries needs: dpkg-shlibdeps reads it. Not one with
# libraries of another name, which the program would not find: the package's name stays. "~": nor a
# release candidate of that.
function(outrider_shlibs file)
  set(text "")
  foreach(library outrider rpcserver)
    string(APPEND text "lib${library} ${OUTRIDER_SOVERSION} outrider (>= ${PROJECT_VERSION}), "
                       "outrider (<< ${OUTRIDER_NEXT_SOVERSION}~)\n")
  endforeach()
  file(WRITE "${file}" "${text}")
endfunction()

# `cpack -G DEB`: all in one package, what it needs of Debian found by dpkg-shlibdeps. Inside another
# project it would take the place of that one's package.
function(outrider_deb)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  set(CPACK_PACKAGE_NAME outrider)
  set(CPACK_PACKAGE_VENDOR "The Outrider authors")
  set(CPACK_PACKAGE_CONTACT "The Outrider authors <outrider@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_PACKAGE_DESCRIPTION_FILE "${PROJECT_SOURCE_DIR}/packaging/description.txt")
  set(CPACK_SET_DESTDIR ON)  # /etc is not below the prefix
  set(CPACK_INSTALL_PREFIX /usr)
  set(CPACK_GENERATOR DEB)
  set(CPACK_STRIP_FILES TRUE)
  set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};outrider;ALL;/"
      "${PROJECT_BINARY_DIR};outrider;system;/")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SECTION utils)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)  # -hf
  set(extra "${PROJECT_BINARY_DIR}/shlibs")
  outrider_shlibs("${extra}")
  foreach(file conffiles triggers postinst prerm postrm)
    list(APPEND extra "${PROJECT_SOURCE_DIR}/packaging/${file}")
  endforeach()
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${extra}")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  include(CPack)
endfunction()

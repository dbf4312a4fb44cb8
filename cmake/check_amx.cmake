# What GCC lacks for AMX, for whom it concerns.
set(OUTRIDER_AMX_INTRINSICS "${CMAKE_CURRENT_LIST_DIR}/amx_intrinsics.h")

# outrider_check_amx(RESULT): RESULT is FALSE when a native build must leave AMX out, else TRUE.
# OUTRIDER_AMX=off and =on decide by hand. On auto the compiler is asked whether it would use AMX at
# all, and only then the check runs; its result is remembered per processor (OUTRIDER_MACHINE), so
# that a build folder carried to another machine is checked again.
function(outrider_check_amx result)
  if(OUTRIDER_AMX STREQUAL "on")
    set(${result} TRUE PARENT_SCOPE)
    return()
  elseif(OUTRIDER_AMX STREQUAL "off")
    message(STATUS "AMX: off, as asked (OUTRIDER_AMX)")
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()

  set(key "${OUTRIDER_MACHINE} ${OUTRIDER_AMX_CHECK_FLAGS}")
  if(NOT OUTRIDER_AMX_CHECKED STREQUAL key)
    outrider_run_amx_check(works why)
    set(OUTRIDER_AMX_CHECKED "${key}" CACHE INTERNAL "processor that the AMX check ran on")
    set(OUTRIDER_AMX_WORKS ${works} CACHE INTERNAL "result of the AMX check")
    message(STATUS "AMX: ${why}")
  endif()
  set(${result} ${OUTRIDER_AMX_WORKS} PARENT_SCOPE)
endfunction()

# OUTRIDER_AMX_CHECK_FLAGS is for the tests, which make the check believe in, or fault on, AMX.
function(outrider_run_amx_check works why)
  set(source "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_amx.c")
  set(program "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/outrider_check_amx")
  set(${works} TRUE PARENT_SCOPE)
  execute_process(
    COMMAND "${CMAKE_C_COMPILER}" -march=native ${OUTRIDER_AMX_CHECK_FLAGS} -dM -E "${source}"
    OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT macros MATCHES "__AMX_TILE__")
    set(${why} "not on this processor" PARENT_SCOPE)
    return()
  endif()
  execute_process(
    COMMAND "${CMAKE_C_COMPILER}" -march=native ${OUTRIDER_AMX_CHECK_FLAGS} -O3 -include
            "${OUTRIDER_AMX_INTRINSICS}" -o "${program}" "${source}"
    ERROR_VARIABLE error RESULT_VARIABLE failed)
  if(failed)
    set(${works} FALSE PARENT_SCOPE)
    set(${why} "left out: the check did not compile: ${error}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${program}" OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE failed
                  TIMEOUT 10)
  file(REMOVE "${program}")
  if(failed STREQUAL "0")
    set(${why} "advertised, and works" PARENT_SCOPE)
  else()
    string(STRIP "${error}" error)
    set(${works} FALSE PARENT_SCOPE)
    set(${why} "advertised, but fails when executed (${failed}: ${error}): left out" PARENT_SCOPE)
  endif()
endfunction()

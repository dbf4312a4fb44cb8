# What this processor really executes, when the build is tuned to it (GGML_NATIVE).
#
# Some virtual machines advertise AMX but fault on its first instruction: -march=native then builds
# a ggml that dies at the first decode. So a child process asks the kernel for the tile registers
# and executes ldtilecfg and the tile multiplications; where it dies, AMX is switched off for us and
# for ggml, and the rest of native tuning stays.
#
# In:  GGML_NATIVE, OUTRIDER_NATIVE, OUTRIDER_AMX (auto | on | off)
# Out: OUTRIDER_MACHINE_FLAGS, for our own code (also on outrider_flags);
#      directory compile options and OUTRIDER_MACHINE, which reach llama.cpp too
set(native_default ${PROJECT_IS_TOP_LEVEL})
if(CMAKE_CROSSCOMPILING OR DEFINED ENV{SOURCE_DATE_EPOCH})
  set(native_default OFF)  # ggml's own rule
endif()
option(GGML_NATIVE "ggml: optimize the build for the current system" ${native_default})
option(OUTRIDER_NATIVE "Tune our own code to this processor too" ${GGML_NATIVE})
set(OUTRIDER_AMX auto CACHE STRING "AMX instructions in a native build: auto (check), on, off")
set_property(CACHE OUTRIDER_AMX PROPERTY STRINGS auto on off)
if(NOT OUTRIDER_AMX MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "OUTRIDER_AMX is '${OUTRIDER_AMX}'; give auto, on or off")
endif()

set(OUTRIDER_MACHINE_FLAGS "")
if(GGML_NATIVE OR OUTRIDER_NATIVE)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64|i.86)$")
    set(native_flag -march=native)
  else()
    set(native_flag -mcpu=native)
  endif()
  if(OUTRIDER_NATIVE)
    list(APPEND OUTRIDER_MACHINE_FLAGS ${native_flag})
  endif()

  # What "native" means here goes into every command line, because neither ninja nor ccache can see
  # it: objects built on another processor are then rebuilt instead of reused.
  execute_process(COMMAND "${CMAKE_C_COMPILER}" ${native_flag} -\#\#\# -E -x c /dev/null
                  OUTPUT_VARIABLE expansion ERROR_VARIABLE expansion_error)
  string(SHA256 OUTRIDER_MACHINE "${expansion}${expansion_error}")
  string(SUBSTRING "${OUTRIDER_MACHINE}" 0 12 OUTRIDER_MACHINE)
  add_compile_definitions("OUTRIDER_MACHINE=0x${OUTRIDER_MACHINE}")

  if(native_flag STREQUAL "-march=native")
    include("${CMAKE_CURRENT_LIST_DIR}/check_amx.cmake")
    outrider_check_amx(amx_works)
    if(NOT amx_works)
      set(no_amx -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
      list(APPEND OUTRIDER_MACHINE_FLAGS ${no_amx})
      add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${no_amx}>")
    endif()
  endif()
endif()
target_compile_options(outrider_flags INTERFACE ${OUTRIDER_MACHINE_FLAGS})

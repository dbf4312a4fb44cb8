# src/kernels has a file for each instruction set, of which the program chooses when it runs. So each
# is compiled for its own instructions, whatever the rest is tuned to, and always optimised: an
# unoptimised kernel is too slow to test anything with. They stay out of unity builds.
#
# outrider_instruction_set(FILE FLAGS...): src/kernels/FILE.cc with these flags.
function(outrider_instruction_set file)
  set(options ${ARGN} -O3)
  if(OUTRIDER_SANITIZE)
    # Of code with checks in it -O3 makes nothing faster, and GCC 12 takes six minutes for a file
    # instead of 20 seconds.
    set(options ${ARGN} -O1)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns of its own intrinsics for AVX512, whose unused operands are left undefined.
    list(APPEND options -Wno-maybe-uninitialized -Wno-uninitialized)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
      # Scheduling before registers are given out wants more of them than there are: the loop for four
      # rows with Q6_K goes to the stack 23 times, and 8 times without (GCC 12).
      list(APPEND options -fno-schedule-insns)
    endif()
  endif()
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/kernels/${file}.cc" PROPERTIES
                              COMPILE_OPTIONS "${options}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  outrider_instruction_set(set_avx512_vnni -march=x86-64-v4 -mavx512vnni)
  outrider_instruction_set(set_avx512 -march=x86-64-v4)
  outrider_instruction_set(set_avx_vnni -march=x86-64-v3 -mavxvnni)
  outrider_instruction_set(set_avx2 -march=x86-64-v3)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  # The first cores with dotprod. Not -march: GCC warns of it beside the -mcpu=native of a build that
  # is tuned to the machine, where a second -mcpu just replaces the first. Nothing needs fp16, so
  # the processor is not asked for it.
  outrider_instruction_set(set_neon_i8mm -mcpu=cortex-a76+nofp16+i8mm)
  outrider_instruction_set(set_neon_dotprod -mcpu=cortex-a76+nofp16)
endif()
outrider_instruction_set(set_scalar)

# To measure, on a processor that has more, what an older one would do: the presets name one.
set(OUTRIDER_FASTEST_SET "" CACHE STRING "The fastest instruction set that the kernels may use; empty: all")
set(known "" scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND known avx512-vnni avx512 avx-vnni avx2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  list(APPEND known neon-i8mm neon-dotprod)
endif()
if(NOT OUTRIDER_FASTEST_SET IN_LIST known)
  message(FATAL_ERROR "OUTRIDER_FASTEST_SET is '${OUTRIDER_FASTEST_SET}'; give one of ${known}")
endif()
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/kernels/instruction_set.cc" PROPERTIES
                            COMPILE_DEFINITIONS "OUTRIDER_FASTEST_SET=\"${OUTRIDER_FASTEST_SET}\""
                            SKIP_UNITY_BUILD_INCLUSION ON)

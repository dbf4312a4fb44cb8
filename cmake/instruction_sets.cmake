# src/kernels has a file for each instruction set, of which the program chooses when it runs. So each
# is compiled for its own instructions, whatever the rest is tuned to, and always optimised: an
# unoptimised kernel is too slow to test anything with. They stay out of unity builds.
#
# outrider_instruction_set(FILE FLAGS...): src/kernels/FILE.cc with these flags.
function(outrider_instruction_set file)
  set(options ${ARGN} -O3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns of its own intrinsics for AVX512, whose unused operands are left undefined.
    list(APPEND options -Wno-maybe-uninitialized -Wno-uninitialized)
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
  outrider_instruction_set(set_neon_i8mm -march=armv8.2-a+dotprod+fp16+i8mm)
  outrider_instruction_set(set_neon_dotprod -march=armv8.2-a+dotprod+fp16)
endif()
outrider_instruction_set(set_scalar)

#!/usr/bin/env bash
# Tests src/kernels for Arm on another processor: compiles them and their tests with Debian's cross
# compiler and runs them under qemu as three processors, of which each has other instruction sets.
# qemu says whether the bits are right, not how fast they come.
#
# scripts/test_arm.sh [BUILD_DIR]   default: build/arm
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${1:-build/arm}
CXX=aarch64-linux-gnu-g++
GTEST=/usr/src/googletest/googletest
JOBS=${OUTRIDER_JOBS:-$(nproc)}

die() {
  printf 'test_arm.sh: %s\n' "$*" >&2
  exit 1
}

install_what_is_missing() {
  local packages=()
  command -v "$CXX" >/dev/null || packages+=(g++-aarch64-linux-gnu)
  command -v qemu-aarch64 >/dev/null || packages+=(qemu-user)
  [[ -e $GTEST/src/gtest-all.cc ]] || packages+=(libgtest-dev)
  ((${#packages[@]})) || return 0
  local root=()
  ((EUID == 0)) || root=(sudo)
  command -v apt-get >/dev/null || die "install what these Debian packages bring: ${packages[*]}"
  "${root[@]}" apt-get update -qq >/dev/null || die "apt-get update failed"
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends \
    "${packages[@]}" >/dev/null || die "could not install ${packages[*]}"
}

# The build's own flags for one set of instructions, so that what is tested is what is built.
set_flags() {
  sed -n "s/^ *outrider_instruction_set($1 *\(-m.*\))\$/\1/p" cmake/instruction_sets.cmake
}

# Prints what make needs to build the test.
makefile() {
  local flags="-std=c++20 -O2 -g1 -ffp-contract=off -fno-trapping-math -Wall -Wextra -Wpedantic"
  flags+=" -Wshadow -Wconversion -Wcast-qual -Werror -Isrc -I. -MMD '-DOUTRIDER_FASTEST_SET=\"\"'"
  local optimised="-O3 -fno-schedule-insns" objects=() source object own
  for source in src/kernels/*.cc testing/kernel_reference.cc; do
    object=$BUILD/$(basename "$source" .cc).o
    own=
    case $source in
      */set_neon_*)
        own="$(set_flags "$(basename "$source" .cc)") $optimised"
        [[ $own == -m* ]] || die "cmake/instruction_sets.cmake has no flags for $source"
        ;;
      */set_*) own=$optimised ;;
    esac
    objects+=("$object")
    printf '%s: %s scripts/test_arm.sh cmake/instruction_sets.cmake\n\t%s %s %s -c %s -o %s\n' \
      "$object" "$source" "$CXX" "$flags" "$own" "$source" "$object"
  done
  for source in gtest-all gtest_main; do
    object=$BUILD/$source.o
    objects+=("$object")
    printf '%s: %s/src/%s.cc\n\t%s -std=c++20 -O1 -I%s -I%s/include -c $< -o $@\n' \
      "$object" "$GTEST" "$source" "$CXX" "$GTEST" "$GTEST"
  done
  printf '%s/kernels_test: %s\n\t%s $^ -pthread -o $@\n-include %s/*.d\n' \
    "$BUILD" "${objects[*]}" "$CXX" "$BUILD"
}

# run CPU SETS...: runs the tests as that processor, which must have just these sets.
run() {
  local cpu=$1 sets log="$BUILD/$1.log"
  shift
  local emulate=(qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$cpu" "$BUILD/kernels_test")
  sets=$("${emulate[@]}" --gtest_list_tests |
    sed -n 's/^  .*\/\([a-z0-9_]*\)_q4_0 .*/\1/p' | tr _ - | xargs)
  [[ $sets == "$*" ]] || die "as $cpu: the sets are '$sets', not '$*'"
  "${emulate[@]}" --gtest_brief=1 >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "as $cpu ($sets): failed; all of it is in $log"
  }
  printf '%-12s %-30s %s\n' "$cpu" "$sets" "$(grep PASSED "$log")"
}

install_what_is_missing
mkdir -p "$BUILD"
makefile >"$BUILD/Makefile"
nice -n 10 make --silent -j "$JOBS" -f "$BUILD/Makefile" "$BUILD/kernels_test"
run max neon-i8mm neon-dotprod scalar
run neoverse-n1 neon-dotprod scalar
run cortex-a72 scalar

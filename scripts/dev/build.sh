# shellcheck shell=bash
# A part of ./dev: configuring and building.

build_dir() { if [[ $1 == release ]]; then echo "$ROOT/build"; else echo "$ROOT/build/$1"; fi; }

# quietly LOG COMMAND...: shows what the command said only if it failed.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

CI_COMPILER=12  # the major version of GCC that CI builds with

# warnings_are_errors: in CI and with its compiler, so that nothing passes here that fails there; other
# compilers may know more warnings than this source has met.
warnings_are_errors() {
  [[ ${CI:-} == true ]] && return
  local version
  version=$("${CXX:-c++}" --version 2>/dev/null) || return
  [[ $version == *"Free Software Foundation"* && $("${CXX:-c++}" -dumpversion) == "$CI_COMPILER"* ]]
}

# configure PRESET [CMAKE ARGUMENTS]: every time, because it also notices another processor.
configure() {
  local preset=$1 werror=OFF dir args=()
  shift
  dir=$(build_dir "$preset")
  if warnings_are_errors; then werror=ON; fi
  read -ra args <<<"${OUTRIDER_CMAKE_ARGS:-}"
  [[ -f $dir/build.ninja ]] || say "./dev: configuring $preset in ${dir#"$ROOT/"}"
  mkdir -p "$dir"
  cmake --preset "$preset" -DOUTRIDER_WERROR=$werror ${args[@]+"${args[@]}"} "$@" \
    >"$dir/configure.log" 2>&1 && return
  # The error without the hundred lines around it, if it is one of CMake's.
  sed -n '/^CMake Error/,/^\(Call Stack\|-- \)/p' "$dir/configure.log" |
    grep -v '^$\|^Call Stack\|^-- ' >&2 || cat "$dir/configure.log" >&2
  die "configuring '$preset' failed (see above, all of it in ${dir#"$ROOT/"}/configure.log)"
}

# One line instead of ninja's or ctest's hundreds (scripts/progress.py).
show_progress() { python3 scripts/progress.py "${TITLE:-$1}"; }

# build_targets PRESET [TARGETS]: prints nothing when there is nothing to do.
build_targets() {
  local preset=$1 dir
  shift
  dir=$(build_dir "$preset")
  ninja -C "$dir" -j "$JOBS" "$@" 2>&1 | show_progress "building $preset" >&2 ||
    die "building '$preset' failed (see above)"
}

cmd_build() {
  local preset=release
  if [[ $# -gt 0 && $1 != -* ]]; then
    preset=$1
    shift
  fi
  case $preset in
    release | debug | asan | tsan | core) ;;
    *) die "no preset '$preset'; give release, debug, asan, tsan or core" ;;
  esac
  need_build
  configure "$preset" "$@"
  build_targets "$preset"
}

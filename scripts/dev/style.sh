# shellcheck shell=bash
# A part of ./dev: format and lint.

sources() {
  local folder folders=()
  for folder in src tools testing tests bench fuzz; do
    if [[ -d $folder ]]; then folders+=("$folder"); fi
  done
  { find "${folders[@]}" \( -name '*.h' -o -name '*.cc' -o -name '*.c' \)
    find examples -name '*.cc'  # those in C look as C programs do
  } | sort
}

# The clang-format that the sources are formatted with: others would change them.
clang_format_14() {
  local program
  for program in clang-format-14 clang-format; do
    if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then
      echo "$program"
      return
    fi
  done
  return 1
}

cmd_format() {
  need style
  sources | xargs -r "$(clang_format_14)" -i
}

# check_style: what takes seconds and is no test of ctest's.
check_style() {
  local failed=0
  sources | xargs -r "$(clang_format_14)" --dry-run --Werror || failed=1
  shellcheck -x dev .ci/run packaging/try_deb.sh packaging/{postinst,prerm,postrm} scripts/test_arm.sh scripts/test_arm_command.sh || failed=1
  return $failed
}

# lint --quick builds and configures nothing.
cmd_lint() {
  local failed=0
  need style
  python3 tests/check_layers.py || failed=1
  python3 tests/check_names.py || failed=1
  python3 tests/check_words.py || failed=1
  python3 scripts/draw_layers.py --check || failed=1
  check_style || failed=1
  if [[ ${1:-} != --quick ]]; then
    need build lint
    configure lint  # without units: its compile_commands.json names every file, for clangd as well
    # GCC's own flags; clang-tidy would call each of them an error.
    sed -i -E 's/ -(fno-gnu-unique|Wno-maybe-uninitialized|Wno-restrict)\b//g' \
      build/lint/compile_commands.json
    # Only files of the build have flags; headers are looked at through them. Debian 12's clang does
    # not know the processors that set_*.cc asks for.
    sources | grep '\.cc$' | grep -v -e '^bench/' -e '^src/kernels/set_' |
      xargs -r -n1 -P "$JOBS" clang-tidy -p build/lint --quiet --warnings-as-errors='*' \
        --header-filter="$PWD/(src|tools|testing|tests|bench|fuzz)/.*" || failed=1
  fi
  [[ $failed == 0 ]] || die "lint found something (see above)"
}

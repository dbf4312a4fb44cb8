# shellcheck shell=bash
# A part of ./dev: fuzzing (fuzz/targets.h).

# Those without llama.cpp first: they are built in a few minutes.
FUZZ_TARGETS=(json_rpc c_abi http http_access store_file llama_ngrams wire packing toml
  json_schema gbnf chat_reader chat_template gguf kept_file command_line)

# The newest clang++ that is installed, with its libFuzzer.
fuzzing_clang() {
  local clang
  for clang in $(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -Vru); do
    [[ -e $("$clang" -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer-x86_64.a ||
      -e $("$clang" -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer.a ||
      -e $("$clang" -print-file-name=libclang_rt.fuzzer-x86_64.a) ]] || continue
    echo "$clang"
    return
  done
  return 1
}

# fuzz_one TARGET SECONDS: what is new goes to build/fuzz/corpus, what is found to
# build/fuzz/found. Prints one line of figures. Where it was interrupted all is over.
fuzz_one() {
  local target=$1 seconds=$2 begin=$SECONDS dir log ended="" status=0
  dir=$(build_dir fuzz)
  mkdir -p "$dir/corpus/$target" "$dir/found"
  log=$dir/found/$target.log
  # The limits are libFuzzer's own: an input that takes longer or more is a finding.
  (cd "$dir/found" && nice -n 19 "$dir/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=3000 -max_len=4096 -print_final_stats=1 -artifact_prefix="$target-" \
    "$dir/corpus/$target" "$ROOT/fuzz/corpus/$target") >"$log" 2>&1 || status=$?
  local runs cover
  case $status in
    0) ;;
    72 | 130) ended=", interrupted" ;;  # libFuzzer's own status for Ctrl-C
    *) ended=", FOUND SOMETHING: ${log#"$ROOT/"}" ;;
  esac
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  cover=$(sed -n 's/^#[0-9]*.*DONE *cov: \([0-9]*\).*/\1/p' "$log")
  printf '%-14s %12s executions, %6s branches seen, %d s%s\n' "$target" "${runs:-?}" "${cover:-?}" \
    $((SECONDS - begin)) "$ended"
  [[ $ended != ", interrupted" ]] || exit 130
  [[ $status == 0 ]] || FAILED=$((FAILED + 1))
}

# fuzz [MINUTES] [TARGET]: each target, or one, for so many minutes, one after the other. A finding
# is fixed, and its input goes to fuzz/corpus, which ./dev test replays.
cmd_fuzz() {
  local minutes=${1:-1} targets=("${FUZZ_TARGETS[@]}") clang target
  [[ $minutes =~ ^[1-9][0-9]*$ ]] || die "fuzz: give the minutes as a whole number from 1 on"
  if [[ $# -gt 1 ]]; then
    [[ " ${FUZZ_TARGETS[*]} " == *" $2 "* ]] ||
      die "fuzz: no target '$2'; there are: ${FUZZ_TARGETS[*]}"
    targets=("$2")
  fi
  clang=$(fuzzing_clang) ||
    die "fuzz: needs clang with libFuzzer; on Debian: apt install clang-19 libclang-rt-19-dev"
  need_build
  configure fuzz -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_C_COMPILER="${clang/++/}"
  for target in "${targets[@]}"; do
    build_targets fuzz "fuzz_$target"
    fuzz_one "$target" $((60 * minutes))
  done
  [[ $FAILED == 0 ]]
}

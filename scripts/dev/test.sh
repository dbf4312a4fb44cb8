# shellcheck shell=bash
# A part of ./dev: the tests.

PASSED=0
FAILED=0

# Statistics, simulations, and the same bits compared again for one more weight type or tokenizer: a
# third of the sanitized tests' time, and nothing in them that the other tests of the same code do not
# touch. `./dev sanitize` runs them, too.
NUMBERS_ONLY='RejectionProof|RulesProof|AMillionDraws|TenThousandTexts|Planner\.SeveralRequests|Planner\.IsAtThreeQuarters'
NUMBERS_ONLY+='|OpenTargetTest\.(AVerdictIs|QuantisedWeights|InsistingGives)|SameOutput\..*Q8_0'
NUMBERS_ONLY+='|OtherVocabulary\..*(same_tokens|with_pieces|BPE_drafted)|LlamaTreeTest\.(RandomShapes|FreeingCells)'
NUMBERS_ONLY+='|LlamaModelExactTest\..*(Q4_0|Q8_0)'

# run_tests PRESET [CTEST ARGUMENTS]: adds to PASSED and FAILED.
run_tests() {
  local preset=$1 report counts
  shift
  report=$(build_dir "$preset")/ctest.xml
  rm -f "$report"
  local status=0
  # Tests share the processor, so threads that wait must not spin.
  OMP_WAIT_POLICY=passive ctest --preset "$preset" -j "$JOBS" --output-junit "$report" "$@" 2>&1 |
    show_progress "testing $preset" >&2 || status=$?
  [[ -s $report ]] || die "ctest gave no report for '$preset'"
  counts=$(python3 - "$report" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
for case in suite.iter("testcase"):
    skipped = case.find("skipped")
    if skipped is not None:
        print("skipped:", case.get("name"), skipped.get("message") or "", file=sys.stderr)
n = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "disabled", "skipped")}
print(n["tests"] - n["failures"] - n["disabled"] - n["skipped"], n["failures"], n["skipped"])
PYTHON
)
  local passed failed skipped
  read -r passed failed skipped <<<"$counts"
  say "$preset: $passed passed, $failed failed, $skipped skipped"
  [[ $((passed + failed)) -gt 0 ]] || die "'$preset' ran no test"
  # A test that could not be started is no failure in the report, but it is one in ctest's status.
  if [[ $status != 0 && $failed == 0 ]]; then failed=$((skipped > 0 ? skipped : 1)); fi
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
}

finish_tests() {
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [[ $FAILED == 0 ]]
}

cmd_test() {
  local without_models=()
  (need examples) || say "./dev: going on without what the Node.js example and pkg-config need"
  need_build
  if ! download smollm2 gemma; then
    [[ -n $CONFIGURED ]] || die "nothing can be built without llama.cpp's source"
    [[ ${CI:-} != true ]] || die "the tests labelled 'model' need the models"
    without_models=(-LE model)
  fi
  parts 5
  part "building release"
  cmd_build release
  part "making the models"
  if [[ ${#without_models[@]} == 0 ]]; then
    ./dev models >/dev/null || die "the models could not be made (see above)"
    export OUTRIDER_MODELS_DIR=$MODELS
  fi
  part "testing release"
  run_tests release ${without_models[@]+"${without_models[@]}"}
  unset OUTRIDER_MODELS_DIR
  part "building with sanitizers"
  cmd_build asan
  part "testing with sanitizers"
  run_tests asan -E "$NUMBERS_ONLY"
  [[ ${#without_models[@]} == 0 ]] ||
    say "./dev: the tests labelled 'model' were not run, for want of models (see the beginning)"
  finish_tests
}

cmd_sanitize() {
  case ${1:-} in
    address) set -- asan ;;
    thread) set -- tsan ;;
    *) die "sanitize: give address (with undefined behaviour) or thread" ;;
  esac
  cmd_build "$1"
  run_tests "$1"
  finish_tests
}

# Random tests again and again, each round with another seed, until the time is over.
cmd_soak() {
  local minutes=${1:-10} end seed
  [[ $minutes =~ ^[0-9]+$ ]] || die "soak: give the minutes as a whole number"
  cmd_build release
  end=$((SECONDS + 60 * minutes))
  while [[ $SECONDS -lt $end && $FAILED == 0 ]]; do
    seed=$((RANDOM * 32768 + RANDOM))
    say "./dev: soak with OUTRIDER_TEST_SEED=$seed"
    OUTRIDER_TEST_SEED=$seed run_tests release -LE model
  done
  finish_tests
}

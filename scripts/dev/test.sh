# shellcheck shell=bash
# A part of ./dev: the tests.

PASSED=0
FAILED=0

# Statistics, simulations, every case of a small function, every chat template once more, and the same
# bits compared again for one more weight type or tokenizer: more than a third of the sanitized tests'
# time, and nothing in them that the other tests of the same code do not touch. `./dev sanitize` runs
# them, too.
NUMBERS_ONLY='RejectionProof|RulesProof|AMillionDraws|TenThousandTexts|Planner\.SeveralRequests|Planner\.IsAtThreeQuarters'
NUMBERS_ONLY+='|OpenTargetTest\.(AVerdictIs|QuantisedWeights|InsistingGives)|SameOutput\..*Q8_0'
NUMBERS_ONLY+='|OtherVocabulary\..*(same_tokens|with_pieces|BPE_drafted)|LlamaTreeTest\.(RandomShapes|FreeingCells)'
NUMBERS_ONLY+='|LlamaModelExactTest\..*(Q4_0|Q8_0)|OpenTargetTest\.MixturesOfExperts'
NUMBERS_ONLY+='|ChatTemplateTest\.(EveryTemplateSaysThe|NoPromptHolds)|ChatGrammarTest\.NoTemplateLets'
NUMBERS_ONLY+='|NumberRangeTest\.HoldsThe|Utf8Test\.TheHeldBackTail|RoomPlan\.InEverySmallWorld'
NUMBERS_ONLY+='|RollbackOutput\.EveryDraft.*(olmo2|lfm2)|SameOutput\.EveryDrafter.*Q4_0$'
NUMBERS_ONLY+='|SameOutput\.EveryExactSetting'
NUMBERS_ONLY+='|CliCompare\.ADivergenceIsShown'
NUMBERS_ONLY+='|ALongTextIsTokenisedWhole/Bpe|Planner\.(ManyRequests|NeverSlower|AGoodCheap)'

# Layers that bytes of strangers reach, the first that are tested with sanitizers. The others' tests are
# left out where OUTRIDER_TEST_MINUTES (CI has 90) has no time for them.
EXPOSED='api|capi|catalog|draft/(ngram|suffix)|http|http/[a-z]+|json'
EXPOSED+='|llama/(chat|download|files|gguf|grammar|schema|vocabulary)|remote|rpcserver|serve|store|tools'

# What all sanitized tests take, in tenths of what the release build's take: 15 on a Zen 1, 22 to 23 by
# the figures of CONTRIBUTING.md.
SANITIZED_TESTS=25

# Bodies that ./dev test sends to each endpoint of /openapi.json; ./dev clients sends 12.
FEW_EXAMPLES=3

# count_tests NAME REPORT STATUS: adds what a report in JUnit's XML counts to PASSED and FAILED, and
# says it. A test that could not be started is no failure in the report, but it is one in the status.
count_tests() {
  local counts passed failed skipped
  counts=$(python3 - "$2" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
for case in root.iter("testcase"):
    skipped = case.find("skipped")
    if skipped is not None:
        print("skipped:", case.get("name"), skipped.get("message") or "", file=sys.stderr)
# CTest's root is the suite; pytest's holds suites, which count errors beside failures.
n = {key: sum(int(suite.get(key, 0)) for suite in root.iter("testsuite"))
     for key in ("tests", "failures", "errors", "disabled", "skipped")}
failed = n["failures"] + n["errors"]
print(n["tests"] - failed - n["disabled"] - n["skipped"], failed, n["skipped"])
PYTHON
)
  read -r passed failed skipped <<<"$counts"
  say "$1: $passed passed, $failed failed, $skipped skipped"
  [[ $((passed + failed)) -gt 0 ]] || die "'$1' ran no test"
  if [[ $3 != 0 && $failed == 0 ]]; then failed=$((skipped > 0 ? skipped : 1)); fi
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
}

# run_tests PRESET [CTEST ARGUMENTS]
run_tests() {
  local preset=$1 report
  shift
  report=$(build_dir "$preset")/ctest.xml
  rm -f "$report"
  local status=0
  # Tests share the processor, so threads that wait must not spin.
  OMP_WAIT_POLICY=passive ctest --preset "$preset" -j "$JOBS" --output-junit "$report" "$@" 2>&1 |
    show_progress "testing $preset" >&2 || status=$?
  [[ -s $report ]] || die "ctest gave no report for '$preset'"
  count_tests "$preset" "$report" "$status"
}

# test_clients PRESET: the server with clients from their registries, and its page in Chromium:
# tests/clients/run.py. The clients are the same for all presets, and installed once.
test_clients() {
  local report status=0
  report=$(build_dir "$1")/clients/report.xml
  (need node clients) || say "./dev: going on without what some clients need"
  need_page || true
  mkdir -p "$(dirname "$report")"
  rm -f "$report"
  python3 tests/clients/run.py --binary "$(build_dir "$1")/outrider" --target "$(model_path smollm2)" \
    --draft "$(model_path draft_q2_k)" --report "$report" >&2 || status=$?
  if [[ $status == 77 ]]; then  # not to be had here; it said why
    [[ ${CI:-} != true ]] || die "the clients' tests need the clients"
    return
  fi
  [[ -s $report ]] || die "the clients' tests gave no report (see above)"
  count_tests "clients, $1" "$report" "$status"
}

# test_like_llama_server PRESET: llama.cpp's own server tests against ours, on tiny models:
# tests/clients/llama_server_tests.py.
test_like_llama_server() {
  local build report status=0
  build=$(build_dir "$1")
  report=$build/llama_server_tests/judged.xml
  rm -f "$report"
  python3 tests/clients/llama_server_tests.py "$build" >&2 || status=$?
  if [[ $status == 77 ]]; then  # what it needs is not to be had here; it said what
    [[ ${CI:-} != true ]] || die "llama.cpp's server tests need the clients"
    return
  fi
  [[ -s $report ]] || die "llama.cpp's server tests gave no report (see above)"
  count_tests "llama.cpp's server tests, $1" "$report" "$status"
}

# test_module python|node: a module on the library and the tiny models of the release build:
# scripts/test_python.py, scripts/test_node.py.
test_module() {
  local report status=0
  report=$(build_dir release)/$1.xml
  rm -f "$report"
  python3 "scripts/test_$1.py" "$(build_dir release)" --report "$report" >&2 || status=$?
  if [[ $status == 77 ]]; then  # what its tests need is not to be had here; it said what
    [[ ${CI:-} != true ]] || die "the module for $1 must be tested"
    return
  fi
  [[ -s $report ]] || die "the tests of the module for $1 gave no report (see above)"
  count_tests "module for $1" "$report" "$status"
}

# uncompiled PRESET: how many files its build has yet to compile. (`ninja -n` only says that it looks
# for new files first.)
uncompiled() {
  local dir object n=0
  dir=$(build_dir "$1")
  while read -r object; do
    [[ -e $dir/$object ]] || n=$((n + 1))
  done < <(ninja -C "$dir" -t targets all | sed -n 's/^\(.*\.o\): .*/\1/p')
  echo "$n"
}

# layer_tests PRESET PATTERN: the targets of the tests of the layers that the pattern matches.
layer_tests() {
  ninja -C "$(build_dir "$1")" -t targets all |
    sed -n 's|^tests/\([a-z_]*\)_test:.*|\1|p' | { grep -xE "${2//\//_}" || true; } |
    sed 's|.*|tests/&_test|'
}

# With the program that replays what is kept of fuzzing: most of what it needs is theirs.
exposed_tests() {
  layer_tests "$1" "$EXPOSED"
  echo fuzz_replay
}

# rest_fits LEFT BUILT MADE UNMADE TESTED RELEASE: whether the other sanitized tests are expected to be
# built and run in the seconds that are left, where MADE files were compiled in BUILT seconds and UNMADE
# are yet to be, and the exposed tests took TESTED, all tests of the release build RELEASE. By what was
# just compiled: the release build says nothing where the compiler's cache had all of it.
rest_fits() {
  local build=0
  if [[ $3 -gt 0 ]]; then build=$(($2 * $4 / $3)); fi
  [[ $1 -ge $((build + SANITIZED_TESTS * $6 / 10 - $5)) ]]
}

# test_sanitized BUILD RELEASE: the tests under the address sanitizer, as far as time allows, where the
# release build took BUILD seconds and its tests RELEASE.
test_sanitized() {
  local targets=() limit=${OUTRIDER_TEST_MINUTES:-} begin before after built tested
  part "with sanitizers, what bytes of strangers reach"
  # These layers are more than half of the build, a file takes 1.4 times as long as in the release
  # build, and their tests come on top: one and a half times what the release build took.
  if [[ -n $limit && $((60 * limit - SECONDS)) -lt $((3 * $1 / 2)) ]]; then
    say "./dev: nothing was tested with sanitizers: $((SECONDS / 60)) of $limit minutes are over, and the" \
      "release build took $(($1 / 60)) (OUTRIDER_TEST_MINUTES)"
    return
  fi
  need_build
  configure asan
  mapfile -t targets < <(exposed_tests asan)
  before=$(uncompiled asan) begin=$SECONDS
  build_targets asan ${targets[@]+"${targets[@]}"}
  after=$(uncompiled asan) built=$((SECONDS - begin)) begin=$SECONDS
  run_tests asan -R "^($EXPOSED|fuzz)/" -E "$NUMBERS_ONLY"
  tested=$((SECONDS - begin))
  part "with sanitizers, the rest"
  if [[ -n $limit ]] &&
    ! rest_fits $((60 * limit - SECONDS)) $built $((before - after)) "$after" $tested "$2"; then
    say "./dev: with sanitizers only the layers were tested that bytes of strangers reach ($EXPOSED):" \
      "after $((SECONDS / 60)) of $limit minutes, the others would not have fitted (OUTRIDER_TEST_MINUTES)"
    return
  fi
  build_targets asan
  run_tests asan -E "$NUMBERS_ONLY|^($EXPOSED|fuzz)/"
}

finish_tests() {
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [[ $FAILED == 0 ]]
}

# The server with real clients and llama.cpp's own tests, as ./dev test has them, but with more bodies
# for each endpoint of /openapi.json.
cmd_clients() {
  need_build
  cmd_build release
  ./dev models smollm2 draft_q2_k >/dev/null || die "the models could not be made (see above)"
  test_clients release
  test_like_llama_server release
  finish_tests
}

# Formatting and shell scripts: seconds, before an hour of building.
test_style() {
  need_style || return 0
  check_style >&2 && return
  say "./dev: './dev lint --quick' says the same, './dev format' formats"
  FAILED=$((FAILED + 1))
}

cmd_test() {
  local without_models=() missing="" begin built tested
  if ! (need examples node clients shells); then
    missing=yes
    say "./dev: going on without what the module for Node.js, pkg-config, some clients and shells need"
  fi
  need_page || missing=yes
  need_build
  if ! download smollm2 gemma; then
    [[ -n $CONFIGURED ]] || die "nothing can be built without llama.cpp's source"
    [[ ${CI:-} != true ]] || die "the tests labelled 'model' need the models"
    without_models=(-LE model)
  fi
  test_style
  [[ -z $missing || ${CI:-} != true ]] ||
    die "the module for Node.js, the clients and the shells must be tested (see the beginning)"
  # Before an hour of building; what cannot be had is said again where it is needed.
  [[ ${#without_models[@]} != 0 ]] || python3 tests/clients/run.py --install >&2 || true
  parts 6
  part "building release"
  begin=$SECONDS
  cmd_build release
  built=$((SECONDS - begin))
  part "making the models"
  if [[ ${#without_models[@]} == 0 ]]; then
    ./dev models >/dev/null || die "the models could not be made (see above)"
    export OUTRIDER_MODELS_DIR=$MODELS
  fi
  part "testing release"
  begin=$SECONDS
  run_tests release ${without_models[@]+"${without_models[@]}"}
  tested=$((SECONDS - begin))
  unset OUTRIDER_MODELS_DIR
  part "testing with clients"
  test_module python
  test_module node
  if [[ ${#without_models[@]} == 0 ]]; then
    OUTRIDER_CLIENTS_EXAMPLES=$FEW_EXAMPLES test_clients release
    test_like_llama_server release
  fi
  test_sanitized "$built" "$tested"
  [[ ${#without_models[@]} == 0 ]] ||
    say "./dev: the tests labelled 'model' and the clients' were not run, for want of models (see the beginning)"
  finish_tests
}

# sanitize_clients PRESET: what real clients do to the sanitized server, where models and clients can be
# had. A report of the sanitizer's is a failed test (tests/clients/sanitized.py).
sanitize_clients() {
  if ! ./dev models smollm2 draft_q2_k >/dev/null; then
    [[ ${CI:-} != true ]] || die "the clients' tests need the models"
    say "./dev: the clients' tests were not run, for want of models (see above)"
    return
  fi
  build_targets "$1" outrider-tiny-model
  OUTRIDER_CLIENTS_EXAMPLES=$FEW_EXAMPLES test_clients "$1"
  test_like_llama_server "$1"
}

# sanitize_layers PRESET LAYERS: the tests beside the code of these folders of src and of their rooms.
sanitize_layers() {
  local preset=$1 layer pattern="" targets=()
  shift
  for layer in "$@"; do
    [[ $layer =~ ^[a-z]+(/[a-z]+)?$ && -d src/$layer ]] ||
      die "sanitize: '$layer' is no part of the tests; give clients, folders of src, or nothing"
    pattern+="${pattern:+|}$layer|$layer/[a-z]+"
  done
  need_build
  configure "$preset"
  mapfile -t targets < <(layer_tests "$preset" "$pattern")
  [[ ${#targets[@]} -gt 0 ]] || die "sanitize: there are no tests in src: $*"
  build_targets "$preset" "${targets[@]}"
  run_tests "$preset" -R "^($pattern)/"
}

# sanitize address|thread [clients | LAYERS]: all tests, or only those with clients, or of some layers.
cmd_sanitize() {
  local preset
  case ${1:-} in
    address) preset=asan ;;
    thread) preset=tsan ;;
    *) die "sanitize: give address (with undefined behaviour) or thread" ;;
  esac
  shift
  if [[ $# -gt 0 && $* != clients ]]; then
    sanitize_layers "$preset" "$@"
  else
    cmd_build "$preset"
    [[ $# -gt 0 ]] || run_tests "$preset"
    sanitize_clients "$preset"
  fi
  [[ $((PASSED + FAILED)) -gt 0 ]] || die "nothing was tested (see above)"
  finish_tests
}

# shellcheck shell=bash
# A part of ./dev: soaks, of what scripts/dev/test.sh has and of what takes long.

# What a round of a soak has beside the tests, in full numbers (OUTRIDER_SOAK): a program of tests, its
# tests, and the minutes after which it is ended and counts as failed. By themselves, one after the
# other, since the server's also measure how long things take; each prints its figures.
SOAK_TESTS=('http_test ServerReliability* 20' 'integration_test MutatedModels.* 20'
  'store_test AtomicFileTest.AKill* 5')
SOAK_MUTATIONS=1000  # of each input of the fuzz targets
SANITIZED_MUTATIONS=30  # the same under the address sanitizer, which sees what no abort shows
SOAK_FIGURES=build/soak/figures.txt  # what the last soak printed, for docs/benchmarks.md
SOAK_ARM_MINUTES=10  # to compile the kernels and run their tests as three processors; half a minute on 2 cores

# bounded MINUTES COMMAND...: with timeout's status. It has a process group of its own, so that all of it
# ends in time; what ends this (Ctrl-C, a closed terminal) is passed on to it.
bounded() (
  timeout -k 30 "${1}m" "${@:2}" &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT TERM HUP
  wait "$child"
)

# timed MINUTES NAME COMMAND...: says what it took; a failure, or no end in time, counts. What it
# printed and what became of it is added to SOAK_FIGURES. Where it was interrupted all is over.
timed() {
  local minutes=$1 name=$2 begin=$SECONDS status=0 outcome=passed
  shift 2
  note_soak "" "$name"
  bounded "$minutes" "$@" | tee -i -a "$SOAK_FIGURES" >&2 || status=$?
  if [[ $status == 130 ]]; then
    note_soak "  interrupted, $((SECONDS - begin)) s"
    exit 130
  fi
  say "./dev: $name took $((SECONDS - begin)) s"
  if [[ $status == 124 ]]; then
    outcome="ended after $minutes minutes"
    say "./dev: $name was $outcome"
  elif [[ $status != 0 ]]; then
    outcome="failed with status $status"
  fi
  note_soak "  $outcome, $((SECONDS - begin)) s"
  [[ $status == 0 ]] && return
  say "./dev: $name failed with status $status (OUTRIDER_TEST_SEED=${OUTRIDER_TEST_SEED:-})"
  FAILED=$((FAILED + 1))
}

note_soak() { printf '%s\n' "$@" >>"$SOAK_FIGURES"; }

# A figure is worth nothing without the day, the commit and the machine.
begin_figures() {
  local commit machine
  commit=$(git rev-parse --short HEAD 2>/dev/null) || commit="no commit is known"
  if [[ -n $(git status --porcelain 2>/dev/null) ]]; then commit+=", with changes"; fi
  machine=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo 2>/dev/null) || machine=
  mkdir -p "$(dirname "$SOAK_FIGURES")"
  printf '%s\n' "./dev soak, $(date -u +%F), $commit, on $(nproc) cores of ${machine:-$(uname -m)}" \
    >"$SOAK_FIGURES"
}

# has_tests PROGRAM FILTER: GoogleTest is content with a filter that none of its tests matches.
has_tests() { "$1" --gtest_list_tests --gtest_filter="$2" | grep '^ ' >/dev/null; }

# soak_round SEED: all tests but those on real models, then what takes long, each part with a limit of
# its own.
soak_round() {
  local tests entry binary filter minutes target passed=$PASSED failed=$FAILED
  tests=$(build_dir release)/tests
  note_soak "" "a round with OUTRIDER_TEST_SEED=$1"
  OUTRIDER_TEST_SEED=$1 run_tests release -LE model
  note_soak "  tests: $((PASSED - passed)) passed, $((FAILED - failed)) failed"
  for entry in "${SOAK_TESTS[@]}"; do
    read -r binary filter minutes <<<"$entry"
    has_tests "$tests/$binary" "$filter" ||
      die "soak: $binary has no test '$filter'; it may have another name, or be in another program"
    OUTRIDER_SOAK=1 OUTRIDER_TEST_SEED=$1 timed "$minutes" "$filter" \
      "$tests/$binary" --gtest_filter="$filter" --gtest_brief=1
  done
  for target in "${FUZZ_TARGETS[@]}"; do
    OUTRIDER_TEST_SEED=$1 timed 5 "replaying $target" \
      env -C "$tests" ./fuzz_replay "$target" "$ROOT/fuzz/corpus/$target" "$SOAK_MUTATIONS"
    OUTRIDER_TEST_SEED=$1 timed 10 "replaying $target, sanitized" env -C "$(build_dir asan)/tests" \
      ./fuzz_replay "$target" "$ROOT/fuzz/corpus/$target" "$SANITIZED_MUTATIONS"
  done
}

# The kernels for Arm, under qemu. Once, not in each round: no seed changes what their tests compare.
soak_arm() {
  if ! (need arm); then
    say "./dev: going on without the kernels for Arm"
    return
  fi
  timed "$SOAK_ARM_MINUTES" "the kernels for Arm" scripts/test_arm.sh
}

build_sanitized_replay() {
  configure asan
  build_targets asan fuzz_replay
}

# Rounds, each with another seed, until the time is over; at least one.
cmd_soak() {
  local minutes=${1:-10} end seed
  [[ $minutes =~ ^(0|[1-9][0-9]*)$ ]] || die "soak: give the minutes as a whole number"
  cmd_build release
  build_sanitized_replay
  begin_figures
  soak_arm
  end=$((SECONDS + 60 * minutes))
  while true; do
    seed=$((RANDOM * 32768 + RANDOM))
    say "./dev: soak with OUTRIDER_TEST_SEED=$seed"
    soak_round "$seed"
    [[ $SECONDS -lt $end && $FAILED == 0 ]] || break
  done
  say "./dev: the figures are in $SOAK_FIGURES"
  finish_tests
}

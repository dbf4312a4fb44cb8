# shellcheck shell=bash
# A part of ./dev: the demo, the benchmarks and the peers.

cmd_peers() {
  cmd_build release
  build_targets release outrider_peers
  say "./dev: the peers are in build/bin"
  say "./dev: checking our files and replay against theirs"
  quietly build/peers.log build/tests/integration_test --gtest_filter='Peers*' ||
    die "we and the peers disagree (see above)"
}

# bench [PROMPTS]: the standard set, beside all settings of llama-server; bench compare: a choice of it;
# bench micro: Google Benchmark; bench rules: what each acceptance rule accepts; bench workers: the
# target on two workers, some milliseconds away.
cmd_bench() {
  local program
  if [[ ${1:-} == micro ]]; then
    shift
    need build bench
    cmd_build release -DOUTRIDER_BENCH=ON
    for program in build/bench/bench_*; do
      [[ -x $program ]] || die "there are no micro-benchmarks in bench/"
      [[ $program != */bench_rules ]] || continue  # needs models: bench rules
      "$program" "$@"
    done
    return
  fi
  if [[ ${1:-} == rules ]]; then
    shift
    need build bench
    cmd_build release -DOUTRIDER_BENCH=ON
    cmd_models smollm2 draft_q3_k_s draft_q4_k_s >/dev/null
    exec build/bench/bench_rules "$(model_path smollm2)" "q3_k_s=$(model_path draft_q3_k_s)" \
      "q4_k_s=$(model_path draft_q4_k_s)" --prompts bench/prompts.jsonl "$@"
  fi
  if [[ ${1:-} == workers ]]; then
    shift
    cmd_build release
    cmd_models smollm2 draft_q3_k_s >/dev/null
    exec python3 bench/workers_bench.py --target "$(model_path smollm2)" \
      --draft "$(model_path draft_q3_k_s)" "$@"
  fi
  if [[ ${1:-} == compare ]]; then
    # What is wrong is said before anything is built.
    if [[ " $* " =~ \ (-h|--help)\  ]]; then exec python3 bench/compare_peers.py --help; fi
    python3 bench/compare_peers.py --target - --draft - "${@:2}" --check || exit
  else
    [[ $# -le 1 && ${1:-} != -* ]] ||
      die "bench: give one file of prompts at most; options are for 'bench compare'"
    python3 bench/compare_peers.py --target - --draft - --prompts "${1:-bench/prompts.jsonl}" \
      --check || exit
  fi
  cmd_peers
  cmd_models standin draft_q3_k_s >/dev/null
  if [[ ${1:-} == compare ]]; then
    shift
    exec python3 bench/compare_peers.py --target "$(model_path standin)" \
      --draft "$(model_path draft_q3_k_s)" "$@"
  fi
  say "The pair: a prompt of each category, three temperatures"
  python3 bench/compare_peers.py --target "$(model_path standin)" \
    --draft "$(model_path draft_q3_k_s)" --prompts "${1:-bench/prompts.jsonl}" \
    --peers none draft-simple:{1..8} --rounds 2
  say "Repetitive work, without a draft model: beside the n-gram types"
  python3 bench/compare_peers.py --target "$(model_path standin)" --prompts bench/repetitive.jsonl \
    --peers none ngram-simple ngram-mod ngram-map-k ngram-map-k4v ngram-cache --temps 0 \
    --per-category 5 --tokens 160 --rounds 2
}

# What the demo will do first, and what that took where it was measured: see CONTRIBUTING.md.
announce_demo() {
  parts 2
  if [[ -x build/outrider && -s $1 && -s $2 ]]; then return; fi
  say "./dev: first what is missing of: fetching 0.1 GB (llama.cpp's source, a model), compiling" \
    "llama.cpp and Outrider, making the two models; then the demo itself, 1 minute." \
    "From nothing that took 7 minutes with 2 cores. You have $JOBS."
}

cmd_demo() {
  local target draft
  case $# in
    0 | 2) ;;
    *) die "demo: give no model, or TARGET.gguf and DRAFT.gguf" ;;
  esac
  need_build
  if [[ $# == 2 ]]; then
    target=$1 draft=$2
    configure release
    build_targets release outrider
  else
    target=$(model_path standin) draft=$(model_path draft_q3_k_s)
    announce_demo "$target" "$draft"
    download smollm2 || die "the demo can't do without"
    part "building"
    # Who wants to see it need not wait for the tests.
    build_targets release outrider outrider-widen outrider-requantize
    part "making the models"
    cmd_models standin draft_q3_k_s >/dev/null
  fi
  exec python3 scripts/demo.py build/outrider "$target" "$draft"
}

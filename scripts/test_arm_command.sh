#!/usr/bin/env bash
# Cross-compiles the whole command for Arm (the preset arm64) and runs it under qemu as three
# processors: each has the kernels that it should have, and the text is the same with and without a
# draft. Compiling takes 15 minutes on 2 cores, running one.
#
# scripts/test_arm_command.sh [TARGET.gguf DRAFT.gguf]   default: the tests' tiny pair
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
TARGET=${1:-build/tests/tiny-target.gguf}
DRAFT=${2:-build/tests/tiny-draft.gguf}
PROGRAM=build/arm64/outrider

die() {
  printf 'test_arm_command.sh: %s\n' "$*" >&2
  exit 1
}

# said CPU ARGUMENTS...: what `outrider run` says as that processor; its figures go to build/arm64.
said() {
  local cpu=$1
  shift
  OUTRIDER_PROBE_BUDGET_MS=5000 timeout 600 qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$cpu" \
    "$PROGRAM" run -m "$TARGET" -p 'Once upon a time' -n 24 --seed 1 --stats "$@" \
    2>"build/arm64/$cpu.log" </dev/null || {
    cat "build/arm64/$cpu.log" >&2
    die "the command fails as $cpu"
  }
}

# same_text CPU KERNELS: as that processor, with these kernels.
same_text() {
  local cpu=$1 kernels=$2 plain temp
  for temp in 0 1; do
    plain=$(said "$cpu" --drafter none --temp "$temp")
    [[ -n $plain ]] || die "there is no text as $cpu"
    grep -q "Outrider's, $kernels," "build/arm64/$cpu.log" ||
      die "as $cpu: the kernels should be $kernels: $(grep kernels "build/arm64/$cpu.log")"
    [[ $plain == "$(said "$cpu" -d "$DRAFT" --width 4 --temp "$temp")" ]] ||
      die "as $cpu a draft changes the text at temperature $temp"
  done
  printf '%-12s %-13s the same text with and without a draft\n' "$cpu" "$kernels"
}

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null ||
    die "'$tool' is missing; on Debian: apt install g++-aarch64-linux-gnu qemu-user"
done
for file in "$TARGET" "$DRAFT"; do
  [[ -s $file ]] || die "there is no '$file'; ./dev build makes the tiny pair, or name two models"
done
# All that packages hold, with warnings as errors: CI makes them on an Arm machine, with both.
cmake --preset arm64 -DOUTRIDER_WERROR=ON >/dev/null
cmake --build --preset arm64 --target outrider outrider_shared rpcserver_shared
same_text max,pauth=off neon-i8mm
same_text neoverse-n1 neon-dotprod
same_text cortex-a72 scalar
